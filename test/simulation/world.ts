/** A world in virtual time: the broker with the topology of a DurableTimer, workers, an owner of flows, and a ledger. */
import { fairQuiet } from "./quiet.ts";
import type { Log } from "../../src/base/log.ts";
import { leaseKeys, stateSubject, streamNames, type StreamRole } from "../../src/protocol/names.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { creationOrder, desiredTopology } from "../../src/topology/desired.ts";
import type { ConsumerSpec, StreamSpec } from "../../src/topology/layout.ts";
import type { WorkerSettings } from "../../src/worker/settings.ts";
import { ModelBroker } from "../model/broker.ts";
import { VirtualTimeline } from "../model/timeline.ts";
import type { Weather } from "../model/weather.ts";
import { Bounds } from "./bounds.ts";
import { Checks } from "./checks.ts";
import type { Dice } from "./dice.ts";
import { Ledger } from "./ledger.ts";
import { limits } from "./limits.ts";
import { WorkerProcess } from "./process.ts";

export type WorldOptions = {
  readonly weather: Weather;
  readonly dice: Dice;
  readonly replicas?: 1 | 3;
  readonly startAtMs?: number;
  readonly settings?: Partial<WorkerSettings>;
  readonly log?: (worker: string) => Log;
};

export class SimulatedWorld {
  readonly timeline: VirtualTimeline;
  readonly broker: ModelBroker;
  readonly ledger: Ledger;
  readonly workers = new Set<WorkerProcess>();
  readonly #options: WorldOptions;
  #workerCount = 0;

  constructor(options: WorldOptions) {
    const { weather, replicas = 1, startAtMs } = options;
    this.#options = options;
    this.timeline = new VirtualTimeline(startAtMs);
    const checks = new Checks(() => this.timeline.nowMs());
    const bounds = new Bounds({ checks, lookahead: options.settings?.lookahead ?? settingsDefault.lookahead });
    this.broker = new ModelBroker({ timeline: this.timeline, replicas, weather, meter: bounds });
    for (const item of topologyOf(replicas)) {
      if (item.kind === "stream") this.broker.addStream(item.config);
      else this.broker.streams.get(item.stream)?.addConsumer(item.config);
    }
    this.ledger = new Ledger(this.broker, checks);
    if (options.settings?.feedback !== undefined) this.ledger.feedback = options.settings.feedback;
    bounds.watch(this.broker);
    this.broker.streamOf(stateSubject(leaseKeys.owner))?.publish({ subject: stateSubject(leaseKeys.owner), headers: [], body: new Uint8Array(2) });
  }

  /** Starts one more worker; `onDeath` hears when it has died. */
  startWorker(onDeath: () => void = () => undefined): WorkerProcess {
    this.#workerCount += 1;
    const { dice, settings, log } = this.#options;
    const name = `worker-${String(this.#workerCount)}`;
    const worker: WorkerProcess = new WorkerProcess({
      broker: this.broker, name, dice: dice.fork(), log: log?.(name) ?? fairQuiet,
      settings: { ...settingsDefault, workerId: name, ...settings },
      onDeath: () => { this.workers.delete(worker); onDeath(); },
      onBug: (error) => this.ledger.checks.bug(error instanceof Error ? (error.stack ?? error.message) + causeOf(error) : String(error)),
    });
    this.workers.add(worker);
    return worker;
  }

  /** Messages of a stream. */
  messages(role: StreamRole, filter = ">") {
    return this.broker.streams.get(streamNames[role])?.store.under(filter) ?? [];
  }

  /** Lets time pass until `isOver`, at most `durationMs`; false when it was not over by then. */
  async pass(durationMs: number, isOver: () => boolean = () => false): Promise<boolean> {
    const untilMs = this.timeline.nowMs() + durationMs;
    let wasOver = false;
    await this.timeline.run(untilMs, () => {
      wasOver = isOver();
      return wasOver || this.ledger.checks.violations.length > 0;
    });
    return wasOver;
  }
}

function causeOf(error: Error): string {
  return error.cause instanceof Error ? `\ncaused by ${error.cause.stack ?? error.cause.message}` : "";
}

export const sweepIntervalMs = 20_000;

const settingsDefault: Omit<WorkerSettings, "workerId"> = {
  limits, lookahead: 8, shutdownGraceMs: 5_000 as never,
  admission: { closePercent: 85, reopenPercent: 75 },
  sweep: { intervalMs: sweepIntervalMs as never, graceMs: 5_000 as never },
};

const topologies = new Map<number, readonly (StreamSpec | ConsumerSpec)[]>();

function topologyOf(replicas: 1 | 3): readonly (StreamSpec | ConsumerSpec)[] {
  const known = topologies.get(replicas);
  if (known !== undefined) return known;
  const bytes = { maxBytes: "64Mi" };
  const parsed = parseSpec({
    nats: { servers: ["nats://model"] },
    topology: { replicas, streams: { state: bytes, commands: bytes, feedback: bytes, snapshots: bytes, terminals: bytes, resumes: bytes } },
  });
  if (!parsed.ok) throw new Error(`the simulation's own spec: ${JSON.stringify(parsed.problems)}`);
  const incarnations = Object.fromEntries(Object.keys(streamNames).map((role) => [role, `life-of-${role}`])) as Record<StreamRole, string>;
  const topology = creationOrder(desiredTopology({ spec: parsed.spec, owner: { id: "sim/sim/sim", uid: "sim" }, incarnations }));
  topologies.set(replicas, topology);
  return topology;
}
