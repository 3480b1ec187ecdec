/**
 * The operator's cluster port over a Kubernetes API server.
 *
 * Every look is a read of its own from the API server; the reflectors only say which resources are worth a look, and hold no
 * copy that could be stale. Secrets cannot be watched with the rights that the operator has: a rotated one is seen at the
 * next regular look.
 */
import { hex, utf8 } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { DurationMs } from "../base/units.ts";
import { TaskGroup } from "../concurrency/task-group.ts";
import type { DesiredWorkers, Looked, ObservedResource, ResourceKey, WorkersFacts } from "../operator/plan/observed.ts";
import type { ClusterPort, Done, ReadResource, ResolvedConnection, ResourceEvent } from "../operator/ports.ts";
import type { DurableTimerStatus } from "../resource/durable-timer.ts";
import { apiVersion, kind, labelNames, labelValues, streamsFinalizer } from "../resource/names.ts";
import type { ApiResult, KubeApi } from "./api.ts";
import { EventWriter } from "./events.ts";
import { stableJson } from "./manifests/json.ts";
import { apiResources, collectionPath, controllerOf, fieldManager, objectPath, type KubeObject, type ObjectMeta } from "./objects.ts";
import { Reflector } from "./reflector.ts";
import { observedResource, type StoredTimer } from "./resource-reader.ts";
import { resolveConnection } from "./secrets.ts";
import { KubeWorkers } from "./workers.ts";

export type KubeClusterOptions = {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly sha256: Sha256;
  /** First part of owner ids; see `readClusterId`. */
  readonly clusterId: string;
  /** Namespaces to look at; empty means all of them. */
  readonly namespaces: readonly string[];
  /** Image of the workers of resources that name none. */
  readonly defaultImage: string;
  /** Asks the API server whether this process still leads. */
  readonly confirmLead: () => Promise<Done>;
  /** Name of this process in events. */
  readonly instance: string;
};

/** The uid of the namespace kube-system, which a cluster keeps for its life. */
export async function readClusterId(api: KubeApi): Promise<ApiResult<string>> {
  const read = await api.call<KubeObject>({ method: "GET", path: objectPath(apiResources.namespaces, { name: "kube-system" }) });
  return read.kind === "failed" ? read : { kind: "ok", value: read.value.metadata.uid };
}

/** DurableTimers and workers in Kubernetes; `watch` runs once in its life. */
export class KubeCluster implements ClusterPort {
  readonly #options: KubeClusterOptions;
  readonly #workers: KubeWorkers;
  readonly #events: EventWriter;
  /** Hash of version and status as last read or written, by resource. */
  readonly #lastStatus = new Map<string, string>();
  #reflectors: readonly Reflector<string>[] = [];

  constructor(options: KubeClusterOptions) {
    this.#options = options;
    this.#workers = new KubeWorkers(options);
    this.#events = new EventWriter(options);
  }

  /** Everything that is watched has been listed at least once. */
  get isSynced(): boolean {
    return this.#reflectors.length > 0 && this.#reflectors.every(({ isSynced }) => isSynced);
  }

  /** How long the slowest watch has done nothing, not even tried. Grows without end only when something hangs. */
  get silentForMs(): DurationMs {
    const nowMs = this.#options.clock.monotonicMs();
    return Math.max(0, ...this.#reflectors.map(({ progressAtMs }) => nowMs - progressAtMs)) as DurationMs;
  }

  clusterId(): string {
    return this.#options.clusterId;
  }

  async readResource(key: ResourceKey): Promise<ReadResource> {
    const read = await this.#options.api.call<StoredTimer>({ method: "GET", path: objectPath(apiResources.durableTimers, key) });
    if (read.kind === "ok") {
      this.#rememberStatus(key, read.value);
      const observed = observedResource(read.value);
      const isHeld = read.value.metadata.deletionTimestamp !== undefined && read.value.metadata.finalizers?.includes(streamsFinalizer) === true;
      return observed.kind === "found" && isHeld ? await this.#withNamespace(observed) : observed;
    }
    if (read.failure.code !== "CLUSTER_MISSING") return read;
    this.#lastStatus.delete(textOf(key));
    return { kind: "absent" };
  }

  async resolveConnection(resource: ObservedResource): Promise<ResolvedConnection> {
    return await resolveConnection(this.#options.api, resource);
  }

  async readWorkers(desired: DesiredWorkers): Promise<Looked<WorkersFacts>> {
    return await this.#workers.read(desired);
  }

  async applyWorkers(desired: DesiredWorkers): Promise<Done> {
    return await this.#workers.apply(desired);
  }

  /** The garbage collector removes what the resource controls. */
  async removeWorkers(key: ResourceKey): Promise<Done> {
    this.#workers.forget(key);
    return { kind: "done" };
  }

  /** Under the version that was read: a finalizer of somebody else's that came meanwhile stays. */
  async setFinalizer(resource: Pick<ObservedResource, "key" | "uid" | "resourceVersion" | "finalizers">, isHeld: boolean): Promise<Done> {
    const { key, uid, resourceVersion, finalizers = [] } = resource;
    const others = finalizers.filter((name) => name !== streamsFinalizer);
    const body = { metadata: { uid, resourceVersion, finalizers: isHeld ? [...others, streamsFinalizer] : others } };
    const path = objectPath(apiResources.durableTimers, key);
    const patched = await this.#options.api.call({ method: "PATCH", path, query: { fieldManager }, body, contentType: "application/merge-patch+json" });
    const isGone = patched.kind === "failed" && patched.failure.code === "CLUSTER_MISSING" && !isHeld;
    return patched.kind === "ok" || isGone ? { kind: "done" } : patched;
  }

  async confirmLead(): Promise<Done> {
    return await this.#options.confirmLead();
  }

  /** The uid makes sure that a status never lands on a resource that was created anew under the same name. */
  async writeStatus(resource: Pick<ObservedResource, "key" | "uid" | "resourceVersion">, status: DurableTimerStatus): Promise<Done> {
    const { key, uid, resourceVersion } = resource;
    if (this.#lastStatus.get(textOf(key)) === this.#fingerprint(resourceVersion, status)) return { kind: "done" };
    const body = { apiVersion, kind, metadata: { ...key, uid, resourceVersion }, status };
    const path = `${objectPath(apiResources.durableTimers, key)}/status`;
    const written = await this.#options.api.call<StoredTimer>({ method: "PUT", path, query: { fieldManager }, body });
    if (written.kind === "failed") return written;
    this.#rememberStatus(key, written.value);
    return { kind: "done" };
  }

  async emitEvent(resource: Pick<ObservedResource, "key" | "uid">, event: ResourceEvent): Promise<void> {
    await this.#events.emit(resource, event);
  }

  async watch({ onKey, signal }: { readonly onKey: (key: ResourceKey) => void; readonly signal: AbortSignal }): Promise<void> {
    const scopes = this.#options.namespaces.length === 0 ? [undefined] : this.#options.namespaces;
    this.#reflectors = scopes.flatMap((namespace) => [this.#timersIn(namespace, onKey), this.#deploymentsIn(namespace, onKey)]);
    const group = new TaskGroup(signal);
    for (const [index, reflector] of this.#reflectors.entries()) group.spawn(`watch ${String(index)}`, (stop) => reflector.run(stop));
    await group.join();
  }

  /** A status write of our own is no reason for another look; what a person can change is. */
  #timersIn(namespace: string | undefined, onKey: (key: ResourceKey) => void): Reflector<string> {
    return new Reflector<string>({
      ...this.#options,
      path: collectionPath(apiResources.durableTimers, namespace),
      keep: ({ metadata }) => stableJson([metadata.uid, metadata.generation, metadata.deletionTimestamp, metadata.annotations]),
      onChange: ({ key, before, now }) => {
        if (before !== now) onKey(key);
      },
    });
  }

  #deploymentsIn(namespace: string | undefined, onKey: (key: ResourceKey) => void): Reflector<string> {
    return new Reflector<string>({
      ...this.#options,
      path: collectionPath(apiResources.deployments, namespace),
      labelSelector: workersSelector,
      keep: ({ metadata }) => ownerName(metadata),
      onChange: ({ key, before, now }) => {
        for (const name of new Set([before ?? "", now ?? ""])) if (name !== "") onKey({ namespace: key.namespace, name });
      },
    });
  }

  /** Whoever may not look at the namespace deletes what the policy says. */
  async #withNamespace(observed: Extract<ReadResource, { readonly kind: "found" }>): Promise<ReadResource> {
    const path = objectPath(apiResources.namespaces, { name: observed.resource.key.namespace });
    const read = await this.#options.api.call<KubeObject>({ method: "GET", path });
    if (read.kind === "failed" && read.failure.kind !== "denied" && read.failure.code !== "CLUSTER_MISSING") return read;
    const isNamespaceEnding = read.kind === "ok" ? read.value.metadata.deletionTimestamp !== undefined : read.failure.code === "CLUSTER_MISSING";
    return { ...observed, resource: { ...observed.resource, isNamespaceEnding } };
  }

  #rememberStatus(key: ResourceKey, stored: StoredTimer): void {
    this.#lastStatus.set(textOf(key), this.#fingerprint(stored.metadata.resourceVersion, stored.status));
  }

  #fingerprint(resourceVersion: string, status: unknown): string {
    return hex(this.#options.sha256(utf8(stableJson([resourceVersion, status]))));
  }
}

/** The DurableTimer that controls an object; empty when none does. */
function ownerName(metadata: ObjectMeta): string {
  const controller = controllerOf(metadata);
  return controller?.kind === kind && controller.apiVersion === apiVersion ? controller.name : "";
}

function textOf(key: ResourceKey): string {
  return `${key.namespace}/${key.name}`;
}

const workersSelector = `${labelNames.managedBy}=${labelValues.managedBy},${labelNames.component}=${labelValues.workerComponent}`;
