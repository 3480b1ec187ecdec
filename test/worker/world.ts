/**
 * A world for tests of the worker: real NATS servers with the topology of a DurableTimer, workers in this process or in
 * processes of their own, a client, and readings of what NATS holds.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { DurationMs } from "../../src/base/units.ts";
import { connectTimers } from "../../src/client/connect.ts";
import type { TimerClient } from "../../src/client/client.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import type { BrokerConnection, Told } from "../../src/nats/core/jetstream.ts";
import { openWorkerPorts } from "../../src/nats/worker-ports.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";
import { leaseKeys, stateSubject, streamNames, type StreamRole } from "../../src/protocol/names.ts";
import { decodeRecord } from "../../src/protocol/record-codec.ts";
import { readResume, type Resume } from "../../src/protocol/resume.ts";
import { workerConfigOf, workerConfigText, type WorkerConfig } from "../../src/resource/worker-config.ts";
import type { DurableTimerSpec } from "../../src/resource/durable-timer.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { creationOrder, desiredTopology } from "../../src/topology/desired.ts";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { topologyRules } from "../../src/topology/requirements.ts";
import { Worker } from "../../src/worker/worker.ts";
import { FakeLog } from "../fakes/log.ts";
import { FakeWorkerMetrics } from "../fakes/worker-metrics.ts";
import { startServers, type NatsServers, type ServersOptions } from "../servers.ts";
import { readAll } from "../stream-reader.ts";

export type WorldOptions = ServersOptions & {
  /** In the place of the spec's own; short, so that tests of redelivery need not wait half a minute. */
  readonly ackWaitMs?: number;
  readonly sizes?: Partial<Record<Exclude<StreamRole, "schedules">, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
};

export type RunningWorker = { readonly worker: Worker; readonly metrics: FakeWorkerMetrics; readonly log: FakeLog; stop(): Promise<void> };

export type WorkerProcess = { readonly child: ChildProcess; readonly exited: Promise<unknown>; readonly lines: string[]; kill(signal?: NodeJS.Signals): Promise<void> };

export type World = AsyncDisposable & {
  readonly servers: NatsServers;
  readonly broker: BrokerConnection;
  readonly client: TimerClient;
  readonly config: WorkerConfig;
  /** A worker in this process, ready; `wrap` puts something between it and the broker. */
  startWorker(options?: { readonly wrap?: (ports: WorkerPorts) => WorkerPorts }): Promise<RunningWorker>;
  /** The real program in a process of its own, ready unless `entry` is another one. */
  spawnWorker(options?: { readonly entry?: string; readonly env?: Readonly<Record<string, string>> }): Promise<WorkerProcess>;
  /** Everything that a stream holds under a filter. */
  messages(role: StreamRole, filter?: string): Promise<readonly StoredMessage[]>;
  resumes(): Promise<readonly StoredResume[]>;
  /** Live records; markers of removed ones are left out. */
  records(): Promise<readonly TimerRecord[]>;
  /** Markers of collected ones are left out. */
  archived(): Promise<readonly TimerRecord[]>;
};

export type StoredResume = Resume & { readonly storedAtMs: number; readonly sequence: number };

/** Starts servers and makes the streams and consumers, as the operator would. */
export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const servers = await startServers({ syncInterval: "always", ...options });
  const broker = openBroker({ servers: servers.urls, name: "test" }, { clock: systemClock, random: systemRandom });
  told(await broker.connected(15_000 as DurationMs));
  const spec = specOf(servers, options);
  await provision(broker, { spec, ackWaitMs: options.ackWaitMs });
  const client = await connectTimers({ servers: servers.urls });
  const config: WorkerConfig = { ...workerConfigOf(spec, { auth: "", ca: "", clientCert: "" }), healthPort: 0 };
  const workers: { stop(): Promise<void> }[] = [];
  const processes: WorkerProcess[] = [];
  const messages = (role: StreamRole, filter = ">") => readAll(servers.urls, { stream: streamNames[role], filter });
  return {
    servers, broker, client, config, messages,
    startWorker: async ({ wrap } = {}) => {
      const running = await startWorker(servers, { config, wrap: wrap ?? ((ports) => ports) });
      workers.push(running);
      return running;
    },
    spawnWorker: async ({ entry, env } = {}) => {
      const process = await spawnWorker(config, { entry, env });
      processes.push(process);
      return process;
    },
    resumes: async () => (await messages("resumes")).map(storedResume),
    records: async () => (await messages("state", `$KV.DURABLE_TIMER_STATE.t.>`)).filter(({ body }) => body.length > 0).map(storedRecord),
    archived: async () => (await messages("terminals")).filter(({ subject, body }) => !subject.includes("~rejected") && body.length > 0).map(storedRecord),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(processes.map((process) => process.kill("SIGKILL")));
      await Promise.all(workers.map((worker) => worker.stop()));
      await client.close();
      await broker.close();
      await servers.stop();
    },
  };
}

/** Polls until `check` gives something, with a bound; what it waits for is said when it does not come. */
export async function until<T>(what: string, check: () => Promise<T | undefined> | T | undefined, timeoutMs = 30_000): Promise<T> {
  const endAtMs = Date.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > endAtMs) throw new Error(`did not come within ${String(timeoutMs)} ms: ${what}`);
    await systemClock.sleep(25 as DurationMs);
  }
}

export function told<T>(answer: Told<T>): T {
  if (answer.kind === "failed") throw answer.failure;
  return answer.value;
}

/** A timer to start: another `execution` is another timer. */
export function request(execution: string, over: Partial<Parameters<TimerClient["start"]>[0]> = {}): Parameters<TimerClient["start"]>[0] {
  return {
    flow: { id: "orders", version: "1" }, execution, node: "wait", edges: { start: "e1", elapsed: "e2", retry: "e3" },
    wait: { delayMs: 300 }, maxRetries: 3, body: Buffer.from(`{"execution":"${execution}"}`), ...over,
  };
}

/** Creates streams, consumers and the owner's key. */
export async function provision(broker: BrokerConnection, { spec, ackWaitMs }: { readonly spec: DurableTimerSpec; readonly ackWaitMs: number | undefined }): Promise<void> {
  const incarnations = Object.fromEntries(Object.keys(streamNames).map((role) => [role, systemRandom.token(8)])) as Record<StreamRole, string>;
  const topology = desiredTopology({ spec, owner: { id: "test/test/test", uid: "test" }, incarnations });
  for (const item of creationOrder(topology)) {
    if (item.kind === "stream") told(await broker.admin.createStream(item.config));
    else told(await broker.admin.createConsumer(item.stream, ackWaitMs === undefined || item.role === "resume" ? item.config : { ...item.config, ack_wait: ackWaitMs * 1_000_000 }));
  }
  await broker.jetStream.publish([{ subject: stateSubject(leaseKeys.owner), headers: [], body: Buffer.from("{}") }]);
}

function specOf(servers: NatsServers, { sizes, spec, count }: WorldOptions): DurableTimerSpec {
  const bytes = (role: Exclude<StreamRole, "schedules">) => ({ maxBytes: sizes?.[role] ?? "64Mi" });
  const parsed = parseSpec({
    nats: { servers: servers.urls },
    topology: {
      replicas: count ?? 1,
      streams: { state: bytes("state"), commands: bytes("commands"), feedback: bytes("feedback"), snapshots: bytes("snapshots"), terminals: bytes("terminals"), resumes: bytes("resumes") },
    },
    ...spec,
  });
  if (!parsed.ok) throw new Error(`the test's own spec: ${JSON.stringify(parsed.problems)}`);
  return parsed.spec;
}

async function startWorker(servers: NatsServers, options: { readonly config: WorkerConfig; readonly wrap: (ports: WorkerPorts) => WorkerPorts }): Promise<RunningWorker> {
  const { config } = options;
  const broker = openBroker({ servers: servers.urls, name: "worker" }, { clock: systemClock, random: systemRandom });
  const metrics = new FakeWorkerMetrics();
  const log = new FakeLog();
  const settings = { ...config, workerId: systemRandom.token(8) };
  const ports = options.wrap(openWorkerPorts(broker, { lookahead: config.lookahead, clock: systemClock, rules: topologyRules }));
  const worker = new Worker({ ports, settings, clock: systemClock, random: systemRandom, sha256: systemSha256, log, metrics });
  const stopping = new AbortController();
  const running = worker.run({ stop: stopping.signal, hurry: new AbortController().signal });
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= (async () => {
    stopping.abort();
    await running;
    await broker.close();
  })());
  await until(`a worker that is ready, not: ${worker.problems().join("; ")}`, () => (worker.isReady() ? true : undefined));
  return { worker, metrics, log, stop };
}

async function spawnWorker(config: WorkerConfig, options: { readonly entry: string | undefined; readonly env: Readonly<Record<string, string>> | undefined }): Promise<WorkerProcess> {
  const entry = options.entry ?? join(import.meta.dirname, "../../src/bin/worker.ts");
  const child = spawn(process.execPath, [entry], { env: { ...process.env, DURABLE_TIMER_WORKER_CONFIG: workerConfigText(config), ...options.env }, stdio: ["ignore", "pipe", "pipe"] });
  const lines: string[] = [];
  const exited = once(child, "exit");
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", (line) => { lines.push(line); });
  const isGone = () => child.exitCode !== null || child.signalCode !== null;
  const kill = async (signal: NodeJS.Signals = "SIGKILL") => {
    if (!isGone()) child.kill(signal);
    await exited;
  };
  const isReady = () => (isGone() || lines.some((line) => line.includes("Found everything the worker needs")) ? true : undefined);
  await until("a worker process that is ready", isReady).catch((error: unknown) => { throw new Error(lines.join("\n"), { cause: error }); });
  return { child, exited, lines, kill };
}

function storedResume(message: StoredMessage): StoredResume {
  const read = readResume(message, systemSha256);
  if (!read.ok) throw new Error(`a resume in the stream: ${read.problem}`);
  return { ...read.resume, storedAtMs: Number(message.timestampNs / 1_000n) / 1_000, sequence: message.sequence };
}

function storedRecord(message: StoredMessage): TimerRecord {
  const decoded = decodeRecord(message.body);
  if (!decoded.ok) throw new Error(`a record in ${message.subject}: ${decoded.problem}`);
  return decoded.record;
}

