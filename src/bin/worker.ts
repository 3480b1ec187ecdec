/** The worker program: reads its configuration from one environment variable, runs until it is told to stop. */
import { hostname } from "node:os";
import { describeFailure } from "../base/failure.ts";
import { brokerLossGraceMs, wakesHeldMax } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";
import { openBroker } from "../nats/core/connection.ts";
import { natsClockProbe } from "../nats/clock-probe.ts";
import { openWorkerPorts } from "../nats/worker-ports.ts";
import { workerConfigVariable, workerNameVariable } from "../resource/names.ts";
import { readWorkerConfig, type WorkerConfig } from "../resource/worker-config.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { systemSha256 } from "../system/sha256.ts";
import { openHealth } from "../telemetry/health.ts";
import { logLevels, openLog } from "../telemetry/log.ts";
import { exposition, openRegistry, workerMetrics } from "../telemetry/metrics.ts";
import { topologyRules } from "../topology/requirements.ts";
import { ClockWatch } from "../worker/clock-watch.ts";
import type { SourceName } from "../worker/ports.ts";
import { Worker } from "../worker/worker.ts";
import { stopSignals } from "./signals.ts";

/** Before the call: what follows it is not initialised yet while it runs. */
const brokerCloseMsMax = 3_000 as DurationMs;

await main();

async function main(): Promise<void> {
  const workerId = `${process.env[workerNameVariable] ?? hostname()}-${systemRandom.token(6)}`;
  const asked = process.env["LOG_LEVEL"] ?? "info";
  const level = logLevels.find((known) => known === asked);
  const log = openLog({ level: level ?? "info", fields: { workerId } });
  if (level === undefined) log.warn({ asked, known: logLevels }, "Was asked for an unknown log level");
  const read = readWorkerConfig(process.env[workerConfigVariable] ?? "");
  if (!read.ok) {
    log.error({ problems: read.problems.map(({ field, problem }) => `${field} ${problem}`), variable: workerConfigVariable }, "Read no usable configuration");
    process.exitCode = 2;
    return;
  }
  const { stop, hurry } = stopSignals();
  await run({ config: read.config, workerId, log, stop, hurry });
}

type Run = { readonly config: WorkerConfig; readonly workerId: string; readonly log: ReturnType<typeof openLog>; readonly stop: AbortSignal; readonly hurry: AbortSignal };

async function run({ config, workerId, log, stop, hurry }: Run): Promise<void> {
  const registry = openRegistry();
  const metrics = workerMetrics(registry);
  const clock = systemClock;
  const broker = openBroker({ ...config.nats, name: `durable-timer-worker ${workerId}` }, { clock, random: systemRandom });
  const lookahead = Math.min(config.lookahead, wakesHeldMax);
  const onStalled = (source: SourceName): void => {
    metrics.sourceStalled(source);
    log.warn({ loop: source }, "Asked a consumer anew that delivered nothing of what it held");
  };
  const ports = openWorkerPorts(broker, { clock, lookahead, rules: topologyRules, onStalled });
  const worker = new Worker({ ports, settings: { ...config, lookahead, workerId }, clock, random: systemRandom, sha256: systemSha256, log, metrics });
  const health = await openHealth({
    port: config.healthPort, ...(process.env["DURABLE_TIMER_HEALTH_HOST"] === undefined ? {} : { host: process.env["DURABLE_TIMER_HEALTH_HOST"] }),
    live: () => worker.stalled().map((name) => `the ${name} loop has stopped going round`),
    ready: () => [...(worker.isReady() ? [] : worker.problems()), ...worker.losses()],
    metrics: exposition(registry), log,
  });
  log.info({ healthPort: health.port, servers: config.nats.servers }, "Started the worker");
  watchBroker({ broker, log, metrics, worker });
  const ended = new AbortController();
  const clocks = new ClockWatch({ probe: natsClockProbe(broker.jetStream, clock), clock, log, metrics }).run(ended.signal);
  try {
    await worker.run({ stop, hurry });
  } catch (error) {
    // A bug: nothing here can be trusted any more, and a new process finds everything in the broker.
    log.error({ err: error, problem: describeFailure(error) }, "Stopped the worker for a bug");
    process.exitCode = 1;
  }
  ended.abort();
  await Promise.race([Promise.all([broker.close(), clocks]), clock.sleep(brokerCloseMsMax)]);
  await health.close();
  log.info({}, "Stopped the worker");
  process.exit();
}

type Watched = { readonly broker: ReturnType<typeof openBroker>; readonly log: Run["log"]; readonly metrics: ReturnType<typeof workerMetrics>; readonly worker: Worker };

function watchBroker({ broker, log, metrics, worker }: Watched): void {
  let wasConnected = false;
  broker.onEvent((event) => {
    metrics.brokerConnected(broker.isConnected());
    metrics.brokerEpoch(broker.epoch());
    switch (event.kind) {
      case "connected":
        log.info({ server: event.identity.serverName, version: event.identity.version, epoch: event.epoch }, "Connected to the broker");
        if (wasConnected) worker.brokerReturned();
        wasConnected = true;
        return;
      case "disconnected":
        log.warn({ graceMs: brokerLossGraceMs }, "Lost the broker");
        return;
      case "lame_duck":
        log.info({}, "Was asked by the broker to go elsewhere");
        return;
      case "error":
        log.warn({ code: event.failure.code, problem: describeFailure(event.failure) }, "Met a problem of the connection");
        return;
      case "closed":
        return;
    }
  });
}
