/**
 * A worker one of whose writes never ends, with the health endpoint of the program. Its clock runs sixty times as fast, so
 * that a test need not wait for as long as a batch may take.
 */
import type { Clock } from "../../src/base/clock.ts";
import type { DurationMs, MonotonicMs } from "../../src/base/units.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import { readWorkerConfig } from "../../src/resource/worker-config.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { openHealth } from "../../src/telemetry/health.ts";
import { topologyRules } from "../../src/topology/requirements.ts";
import type { Source } from "../../src/worker/ports.ts";
import { Worker } from "../../src/worker/worker.ts";
import { FakeLog } from "../fakes/log.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";

const read = readWorkerConfig(process.env["DURABLE_TIMER_WORKER_CONFIG"] ?? "");
if (!read.ok) throw new Error("the test's own configuration");

const speed = 60;
const clock: Clock = {
  nowMs: () => systemClock.nowMs(),
  monotonicMs: () => (systemClock.monotonicMs() * speed) as MonotonicMs,
  sleep: (duration, signal) => systemClock.sleep((duration / speed) as DurationMs, signal),
};
const broker = openBroker({ servers: read.config.nats.servers, name: "stuck worker" }, { clock: systemClock, random: systemRandom });
const ports = openWorkerPorts(broker, { lookahead: read.config.lookahead, clock: systemClock, rules: topologyRules });
const hurried = (source: Source): Source => ({
  take: (options) => source.take({ ...options, expiresMs: (options.expiresMs / speed) as DurationMs }),
  pause: () => { source.pause(); }, resume: () => { source.resume(); }, close: () => source.close(),
});
const sources = { start: hurried(ports.sources.start), feedback: hurried(ports.sources.feedback), wake: hurried(ports.sources.wake) };
const worker = new Worker({
  ports: { ...ports, sources, schedules: { ...ports.schedules, arm: () => new Promise(() => undefined) } },
  settings: { ...read.config, workerId: "stuck" }, clock, random: systemRandom, sha256: systemSha256, log: new FakeLog(), metrics: new FakeWorkerMetrics(),
});
const health = await openHealth({
  port: 0, host: "127.0.0.1", live: () => worker.stalled(), ready: () => worker.problems(),
  metrics: { contentType: "text/plain", text: () => Promise.resolve("") }, log: new FakeLog(),
});
const never = new AbortController().signal;
const running = worker.run({ stop: never, hurry: never });
while (!worker.isReady()) await systemClock.sleep(5 as DurationMs);
console.log(JSON.stringify({ healthPort: health.port }));
console.log("Found everything the worker needs");
await running;
