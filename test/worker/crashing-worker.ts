/**
 * A worker that kills itself at its n-th write, before or after the broker has it: the crash points of the tests. It is
 * composed like the program, with something between the worker and its ports; the program has no such switch.
 */
import { openBroker } from "../../src/nats/core/connection.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import { readWorkerConfig } from "../../src/resource/worker-config.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { topologyRules } from "../../src/topology/requirements.ts";
import { Worker } from "../../src/worker/worker.ts";
import { FakeLog } from "../fakes/log.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";

const point = JSON.parse(process.env["CRASH_POINT"] ?? "{}") as { readonly nth: number; readonly when: "before" | "after" };
const read = readWorkerConfig(process.env["DURABLE_TIMER_WORKER_CONFIG"] ?? "");
if (!read.ok) throw new Error("the test's own configuration");

let writeCount = 0;

function crashing<Arguments extends readonly unknown[], Result>(write: (...args: Arguments) => Promise<Result>): (...args: Arguments) => Promise<Result> {
  return async (...args) => {
    writeCount += 1;
    const isPoint = writeCount === point.nth;
    if (isPoint && point.when === "before") process.kill(process.pid, "SIGKILL");
    const result = await write(...args);
    if (isPoint) process.kill(process.pid, "SIGKILL");
    return result;
  };
}

function wrap(ports: WorkerPorts): WorkerPorts {
  const { state, snapshots, schedules, resumes, archive } = ports;
  return {
    ...ports,
    state: { read: (keys, from) => state.read(keys, from), write: crashing((items) => state.write(items)), remove: crashing((items) => state.remove(items)) },
    snapshots: { read: (keys, from) => snapshots.read(keys, from), create: crashing((items) => snapshots.create(items)), bury: crashing((items) => snapshots.bury(items)) },
    schedules: { look: (keys) => schedules.look(keys), arm: crashing((items) => schedules.arm(items)), disarm: crashing((keys) => schedules.disarm(keys)) },
    resumes: { publish: crashing((items) => resumes.publish(items)) },
    archive: { read: (keys, from) => archive.read(keys, from), create: crashing((items) => archive.create(items)), remove: crashing((items) => archive.remove(items)) },
  };
}

const broker = openBroker({ servers: read.config.nats.servers, name: "crashing worker" }, { clock: systemClock, random: systemRandom });
const ports = wrap(openWorkerPorts(broker, { lookahead: read.config.lookahead, clock: systemClock, rules: topologyRules }));
const never = new AbortController().signal;
const worker = new Worker({
  ports, settings: { ...read.config, workerId: "crashing" }, clock: systemClock, random: systemRandom, sha256: systemSha256, log: new FakeLog(), metrics: new FakeWorkerMetrics(),
});
const running = worker.run({ stop: never, hurry: never });
while (!worker.isReady()) await systemClock.sleep(5 as never);
console.log("Found everything the worker needs");
await running;
