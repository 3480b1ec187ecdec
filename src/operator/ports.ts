/**
 * What the operator needs from the outside: a cluster that holds resources and runs workers, a broker, metrics.
 * Kubernetes and the local folder implement the cluster; NATS implements the broker. The facts that they hand over are
 * defined beside the plan that reads them, in plan/observed.ts.
 *
 * C1 No method rejects for what the other side answers: outcomes are values. A method rejects only when its signal
 *    aborts, or for a bug.
 * C2 Every wait is bounded by the adapter's own time limit.
 * C3 Reads are as fresh as the adapter can make them; a stale read is caught by the resource version, by the names that
 *    creation claims, or by the next pass.
 * C4 A write that finds its target already as wanted sends nothing.
 */
import type { Failure } from "../base/failure.ts";
import type { DurationMs, EpochMs } from "../base/units.ts";
import type { DurableTimerStatus } from "../resource/durable-timer.ts";
import type { IdentitySecret } from "../resource/secrets.ts";
import type {
  BrokerObservation,
  DesiredWorkers,
  Looked,
  ObservedResource,
  ResourceKey,
  WorkersFacts,
} from "./plan/observed.ts";

/** What became of an attempt to change something. */
export type Done = { readonly kind: "done" } | { readonly kind: "failed"; readonly failure: Failure };

/** A resource as it was read. */
export type ReadResource =
  | { readonly kind: "found"; readonly resource: ObservedResource }
  | { readonly kind: "absent" }
  /** It exists and this version cannot read its spec; each problem names the field. */
  | { readonly kind: "invalid"; readonly resource: Omit<ObservedResource, "spec">; readonly problems: readonly string[] }
  | { readonly kind: "failed"; readonly failure: Failure };

/** How to reach a broker, with the secrets themselves: kept in memory only, never logged, never part of Observed. */
export type BrokerConnectionOptions = {
  readonly servers: readonly string[];
  /** Name of the connection as the broker shows it. */
  readonly name: string;
  readonly domain?: string;
  readonly auth?: IdentitySecret;
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string; readonly handshakeFirst: boolean };
};

export type ResolvedConnection =
  | {
      readonly kind: "resolved";
      readonly options: BrokerConnectionOptions;
      readonly warnings: readonly string[];
      /** What the workers' own connection lacks; absent when nothing is known to be missing. */
      readonly workerProblems?: readonly string[];
    }
  /** Something that the resource names is not there or not usable; each problem says which thing and what to do. */
  | { readonly kind: "missing"; readonly problems: readonly string[] }
  | { readonly kind: "failed"; readonly failure: Failure };

/** An event about one resource. Its text is stable, so that repeats can be counted together. */
export type ResourceEvent = {
  readonly severity: "Normal" | "Warning";
  /** CamelCase, from the list in src/resource/conditions.ts. */
  readonly reason: string;
  readonly message: string;
};

/** Where resources live and workers run. */
export interface ClusterPort {
  /** First part of the owner id: names this cluster for ever (uid of kube-system, or of the local folder). */
  clusterId(): string;
  readResource(key: ResourceKey): Promise<ReadResource>;
  /** Reads what spec.nats names for the operator's own identity, and looks whether the workers' is there. */
  resolveConnection(resource: ObservedResource): Promise<ResolvedConnection>;
  /** Renders the desired workers and compares them with what runs. Changes nothing. */
  readWorkers(desired: DesiredWorkers): Promise<Looked<WorkersFacts>>;
  /** Brings the workers to the desired state, touching only what differs. Foreign objects are refused, never taken. */
  applyWorkers(desired: DesiredWorkers): Promise<Done>;
  /**
   * Removes the workers of a resource that is being deleted or gone. Where owner references do this, it does nothing.
   * Idempotent.
   */
  removeWorkers(key: ResourceKey): Promise<Done>;
  /** Puts our finalizer on the resource, or takes it off; a conflict when the resource was written since it was read. */
  setFinalizer(resource: Pick<ObservedResource, "key" | "uid" | "resourceVersion" | "finalizers">, isHeld: boolean): Promise<Done>;
  /** Makes sure, before something is destroyed, that this process may still act: asked anew, not remembered. */
  confirmLead(): Promise<Done>;
  /** Writes the status as a whole; a conflict when the resource was written since it was read. */
  writeStatus(resource: Pick<ObservedResource, "key" | "uid" | "resourceVersion">, status: DurableTimerStatus): Promise<Done>;
  /** Best effort; never delays a pass for longer than one request. */
  emitEvent(resource: Pick<ObservedResource, "key" | "uid">, event: ResourceEvent): Promise<void>;
  /**
   * Calls `onKey` once for each resource that exists, and again whenever a resource, its workers or a Secret that it
   * names may have changed or gone (also for what was missed during a disconnect). Resolves when `signal` aborts.
   */
  watch(options: { readonly onKey: (key: ResourceKey) => void; readonly signal: AbortSignal }): Promise<void>;
}

/** A stream or consumer configuration in the server's own field names. */
export type ServerConfig = Readonly<Record<string, unknown>>;

/** Metadata that a stream must have at the moment of a write that cannot be taken back; undefined: must not have. */
export type StreamMark = Readonly<Record<string, string | undefined>>;

/**
 * One connection to one broker, with one identity. It reconnects by itself until it is closed.
 *
 * B1 Creating fails with STREAM_EXISTS or CONSUMER_EXISTS when the name is taken with another configuration; updating
 *    fails with STREAM_MISSING or CONSUMER_MISSING and never creates.
 * B2 After a write that changed a stream or consumer, the server's answer was compared with what was sent: a feature
 *    that an old server silently dropped is BROKER_FEATURE_MISSING.
 * B3 Nothing here deletes or purges but `deleteStream` and `purgeStream`, which look at the stamp again first.
 */
export interface BrokerSession {
  /** Waits a bounded time for the first connection. All INFO requests of a pass in one go; answered by leaders. */
  observe(signal: AbortSignal): Promise<BrokerObservation>;
  createStream(config: ServerConfig): Promise<Done>;
  updateStream(config: ServerConfig): Promise<Done>;
  /** Deletes a stream whose mark is still the expected one; done when there is none. A conflict when it holds messages and may not. */
  deleteStream(target: { readonly stream: string; readonly mark: StreamMark; readonly mayHoldMessages: boolean }): Promise<Done>;
  /** Removes what lies on these subjects of a stream whose mark is still the expected one; done when there is none. */
  purgeStream(target: { readonly stream: string; readonly subject: string; readonly mark: StreamMark }): Promise<Done>;
  /** Updates a stream whose mark is still the expected one. Creating never takes over and updating always does: so it is proved before. */
  adoptStream(target: { readonly config: ServerConfig; readonly mark: StreamMark }): Promise<Done>;
  createConsumer(target: { readonly stream: string; readonly config: ServerConfig }): Promise<Done>;
  updateConsumer(target: { readonly stream: string; readonly config: ServerConfig }): Promise<Done>;
  /** Pauses until that instant of the broker's clock; an instant in the past resumes. */
  pauseConsumer(target: { readonly stream: string; readonly consumer: string; readonly untilMs: EpochMs }): Promise<Done>;
  /** Creates the owner's key in the state bucket with that text; done when it is there with the same text already. */
  writeOwnerKey(text: string): Promise<Done>;
  /** Calls `listener` when the connection came or went. Returns the way to stop. */
  onChange(listener: () => void): () => void;
  /** Idempotent. */
  close(): Promise<void>;
}

export interface BrokerPort {
  /** Starts connecting and returns at once. */
  open(options: BrokerConnectionOptions): BrokerSession;
}

/** How a pass ended. */
export type ReconcileResult = "unchanged" | "changed" | "failed" | "gone";

/** What the operator counts. Names and help texts are the telemetry room's. */
export interface OperatorMetrics {
  reconciled(result: ReconcileResult, durationMs: DurationMs): void;
  /** `action` is the kind of an action in plan/action.ts. */
  acted(action: string, outcome: "done" | "failed"): void;
  queueDepth(count: number): void;
  leading(isLeader: boolean): void;
  /** Resources by the status of their Ready condition. */
  resourcesReady(counts: { readonly ready: number; readonly notReady: number }): void;
}
