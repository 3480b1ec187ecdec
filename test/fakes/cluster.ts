// A cluster in memory: resources, workers and a watch, behind the operator's port. It counts what is written, and fails where a
// test says so. Workers become ready when the test lets them.

import { Failure } from "../../src/base/failure.ts";
import type { DesiredWorkers, Looked, ObservedResource, ResourceKey, WorkersFacts } from "../../src/operator/plan/observed.ts";
import type { BrokerConnectionOptions, ClusterPort, Done, ReadResource, ResolvedConnection, ResourceEvent } from "../../src/operator/ports.ts";
import { streamsFinalizer } from "../../src/resource/names.ts";
import type { DurableTimerSpec, DurableTimerStatus } from "../../src/resource/durable-timer.ts";

export type FakeResource = { -readonly [Field in keyof ObservedResource]: ObservedResource[Field] };

export type ClusterCall = "readResource" | "resolveConnection" | "readWorkers" | "applyWorkers" | "removeWorkers" | "writeStatus" | "setFinalizer" | "confirmLead";

type Workers = { desired: DesiredWorkers; readyCount: number; problem: string };

export class FakeCluster implements ClusterPort {
  readonly resources = new Map<string, FakeResource>();
  /** Problems of resources whose spec cannot be read. */
  readonly invalid = new Map<string, readonly string[]>();
  readonly workers = new Map<string, Workers>();
  /** Every write, as `call namespace/name`. */
  readonly writes: string[] = [];
  readonly events: (ResourceEvent & { readonly key: ResourceKey })[] = [];
  /** Statuses in the order in which they were written. */
  readonly statuses: DurableTimerStatus[] = [];
  /** What calls answer instead of doing anything, until taken away. */
  readonly failures = new Map<ClusterCall, Failure>();
  /** Thrown by readResource of that resource: a bug. */
  readonly poisoned = new Set<string>();
  connection: ResolvedConnection;
  /** Whether workers are ready as soon as they are applied. */
  becomesReady = true;
  #versionCount = 0;
  #uidCount = 0;
  readonly #listeners = new Set<(key: ResourceKey) => void>();

  readonly #clusterId: string;

  constructor(options: { readonly connection: BrokerConnectionOptions; readonly clusterId?: string }) {
    this.#clusterId = options.clusterId ?? "fake-cluster";
    this.connection = { kind: "resolved", options: options.connection, warnings: [] };
  }

  /** Creates a resource, or changes its spec. */
  put(key: ResourceKey, spec: DurableTimerSpec, annotations: Readonly<Record<string, string>> = {}): void {
    const had = this.resources.get(text(key));
    const generation = (had?.generation ?? 0) + 1;
    const uid = had?.uid ?? `uid-${String((this.#uidCount += 1))}`;
    const kept = { isDeletionRequested: false, finalizers: [], ...had };
    this.resources.set(text(key), { ...kept, key, uid, generation, resourceVersion: this.#nextVersion(), annotations, spec });
    this.touch(key);
  }

  /** The resource goes; what it owned in the cluster goes with it. */
  delete(key: ResourceKey): void {
    this.resources.delete(text(key));
    this.workers.delete(text(key));
    this.touch(key);
  }

  /** Lets workers be ready, or not. */
  setReady(key: ResourceKey, readyCount: number, problem = ""): void {
    const workers = this.workers.get(text(key));
    if (workers !== undefined) Object.assign(workers, { readyCount, problem });
    this.touch(key);
  }

  status(key: ResourceKey): DurableTimerStatus | undefined {
    return this.resources.get(text(key))?.status;
  }

  /** Tells the watch that something about `key` may have changed. */
  touch(key: ResourceKey): void {
    for (const listener of this.#listeners) listener(key);
  }

  clusterId(): string {
    return this.#clusterId;
  }

  async readResource(key: ResourceKey): Promise<ReadResource> {
    if (this.poisoned.has(text(key))) throw new TypeError("a planted bug");
    const failure = this.failures.get("readResource");
    if (failure !== undefined) return { kind: "failed", failure };
    const resource = this.resources.get(text(key));
    if (resource === undefined) return { kind: "absent" };
    const problems = this.invalid.get(text(key));
    return problems === undefined ? { kind: "found", resource: { ...resource } } : { kind: "invalid", resource: { ...resource }, problems };
  }

  async resolveConnection(): Promise<ResolvedConnection> {
    const failure = this.failures.get("resolveConnection");
    return failure === undefined ? this.connection : { kind: "failed", failure };
  }

  async readWorkers(desired: DesiredWorkers): Promise<Looked<WorkersFacts>> {
    const failure = this.failures.get("readWorkers");
    if (failure !== undefined) return { kind: "failed", failure: { kind: failure.kind, code: failure.code, message: failure.message } };
    return { kind: "found", value: factsOf(this.workers.get(text(desired.key)), desired) };
  }

  async applyWorkers(desired: DesiredWorkers): Promise<Done> {
    return this.#write("applyWorkers", desired.key, () => {
      this.workers.set(text(desired.key), { desired, readyCount: this.becomesReady ? desired.spec.workers.replicas : 0, problem: "" });
      this.touch(desired.key);
    });
  }

  async removeWorkers(key: ResourceKey): Promise<Done> {
    return this.#write("removeWorkers", key, () => this.workers.delete(text(key)));
  }

  async setFinalizer({ key, resourceVersion }: Pick<ObservedResource, "key" | "uid" | "resourceVersion">, isHeld: boolean): Promise<Done> {
    const resource = this.resources.get(text(key));
    if (resource?.resourceVersion !== resourceVersion) return failed(new Failure("conflict", "CLUSTER_CONFLICT", "set a finalizer"));
    return this.#write("setFinalizer", key, () => {
      resource.finalizers = isHeld ? [streamsFinalizer] : [];
      resource.resourceVersion = this.#nextVersion();
      if (!isHeld && resource.isDeletionRequested) this.delete(key);
    });
  }

  async confirmLead(): Promise<Done> {
    const failure = this.failures.get("confirmLead");
    return failure === undefined ? { kind: "done" } : failed(failure);
  }

  /** A person deletes the resource: it goes at once, unless our finalizer holds it. */
  requestDeletion(key: ResourceKey, atMs: number): void {
    const resource = this.resources.get(text(key));
    if (resource === undefined) return;
    if ((resource.finalizers ?? []).length === 0) return this.delete(key);
    Object.assign(resource, { isDeletionRequested: true, deletionRequestedAtMs: atMs, resourceVersion: this.#nextVersion() });
    this.touch(key);
  }

  async writeStatus({ key, resourceVersion }: Pick<ObservedResource, "key" | "uid" | "resourceVersion">, status: DurableTimerStatus): Promise<Done> {
    const resource = this.resources.get(text(key));
    if (resource === undefined) return failed(new Failure("conflict", "CLUSTER_MISSING", "write a status"));
    if (resource.resourceVersion !== resourceVersion) return failed(new Failure("conflict", "CLUSTER_CONFLICT", "write a status"));
    return this.#write("writeStatus", key, () => {
      // Through JSON, as a real cluster would store it.
      resource.status = JSON.parse(JSON.stringify(status)) as DurableTimerStatus;
      resource.resourceVersion = this.#nextVersion();
      this.statuses.push(resource.status);
      this.touch(key);
    });
  }

  async emitEvent({ key }: Pick<ObservedResource, "key" | "uid">, event: ResourceEvent): Promise<void> {
    this.events.push({ ...event, key });
  }

  async watch({ onKey, signal }: { readonly onKey: (key: ResourceKey) => void; readonly signal: AbortSignal }): Promise<void> {
    this.#listeners.add(onKey);
    for (const { key } of this.resources.values()) onKey(key);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#listeners.delete(onKey);
  }

  #write(call: ClusterCall, key: ResourceKey, change: () => void): Done {
    const failure = this.failures.get(call);
    if (failure !== undefined) return failed(failure);
    this.writes.push(`${call} ${text(key)}`);
    change();
    return { kind: "done" };
  }

  #nextVersion(): string {
    return String((this.#versionCount += 1));
  }
}

function factsOf(workers: Workers | undefined, desired: DesiredWorkers): WorkersFacts {
  const has = workers?.desired.spec.workers.replicas ?? 0;
  return {
    exists: workers !== undefined,
    drift: workers === undefined ? [] : differences(workers.desired, desired),
    foreign: [],
    leaving: [],
    wantedReplicas: has,
    replicas: has,
    updatedReplicas: has,
    readyReplicas: Math.min(workers?.readyCount ?? 0, desired.spec.workers.replicas),
    isObserved: true,
    hasExceededDeadline: false,
    selector: `durabletimer.dev/name=${desired.key.name}`,
    image: desired.spec.workers.image ?? "default",
    templateHash: "fake",
    problem: workers?.problem ?? "",
  };
}

function text({ namespace, name }: ResourceKey): string {
  return `${namespace}/${name}`;
}

function failed(failure: Failure): Done {
  return { kind: "failed", failure };
}

function differences(had: DesiredWorkers, wanted: DesiredWorkers): readonly string[] {
  const parts = ["uid", "ownerId"] as const;
  const plain = parts.filter((part) => had[part] !== wanted[part]);
  return JSON.stringify(had.spec.workers) === JSON.stringify(wanted.spec.workers) ? plain : [...plain, "spec.workers"];
}
