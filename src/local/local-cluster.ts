/**
 * The operator's cluster port over a file and child processes: the file is the resource, the state folder is the API
 * server's memory, a pool of processes is the Deployment.
 *
 * One without a pool of its own only looks: it reads what another process wrote down, and refuses every change.
 */
import { setMaxListeners } from "node:events";
import { statSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { filePollIntervalMs } from "../base/limits.ts";
import type { DesiredWorkers, Looked, ObservedResource, ResourceKey, WorkersFacts } from "../operator/plan/observed.ts";
import type { ClusterPort, Done, ReadResource, ResolvedConnection, ResourceEvent } from "../operator/ports.ts";
import type { Condition } from "../resource/conditions.ts";
import type { DurableTimerStatus } from "../resource/durable-timer.ts";
import type { LocalResource } from "./local-resource.ts";
import { resolveFromFolder, secretFiles } from "./secrets-folder.ts";
import type { PoolFacts, WorkerPool } from "./worker-pool.ts";
import { poolPlan, workersHash, type WorkerSurroundings } from "./worker-plan.ts";

/** What the operator says of a resource. */
export type ResourceNotice =
  /** A condition that was looked at for the first time, or whose status or reason is another one now. */
  | { readonly kind: "condition_turned"; readonly condition: Condition }
  | { readonly kind: "event"; readonly event: ResourceEvent };

export type LocalClusterOptions = {
  readonly clusterId: string;
  readonly resource: LocalResource;
  readonly secretsFolder: string;
  readonly clock: Clock;
  readonly onNotice: (notice: ResourceNotice) => void;
  /** Absent for looking only. */
  readonly workers?: { readonly pool: WorkerPool; readonly surroundings: WorkerSurroundings };
  /** The workers as another process runs them; read when `workers` is absent. */
  readonly recordedWorkers?: () => PoolFacts | undefined;
};

/** The cluster of one state folder. */
export class LocalCluster implements ClusterPort {
  readonly #options: LocalClusterOptions;
  readonly #changes = new EventTarget();

  constructor(options: LocalClusterOptions) {
    this.#options = options;
    setMaxListeners(0, this.#changes);
  }

  clusterId(): string {
    return this.#options.clusterId;
  }

  async readResource(key: ResourceKey): Promise<ReadResource> {
    return this.#options.resource.read(key);
  }

  async resolveConnection(resource: ObservedResource): Promise<ResolvedConnection> {
    return resolveFromFolder(resource.spec, this.#options.secretsFolder);
  }

  async readWorkers(desired: DesiredWorkers): Promise<Looked<WorkersFacts>> {
    const { workers, recordedWorkers } = this.#options;
    const facts = workers === undefined ? recordedWorkers?.() : workers.pool.facts();
    if (facts === undefined) return { kind: "absent" };
    const hash = workersHash(desired.spec, this.#options.secretsFolder);
    const { replicas: wantedReplicas, minReadySeconds, progressDeadlineSeconds } = desired.spec.workers;
    const compared = {
      configuration: facts.hash === hash,
      replicas: facts.wantedReplicas === wantedReplicas,
      minReadySeconds: facts.minReadyMs === minReadySeconds * 1_000,
      progressDeadlineSeconds: facts.progressDeadlineMs === progressDeadlineSeconds * 1_000,
    };
    const drift = Object.entries(compared).flatMap(([field, isSame]) => (isSame ? [] : [field]));
    const { replicas, updatedReplicas, readyReplicas, hasExceededDeadline, problem } = facts;
    return {
      kind: "found",
      value: {
        exists: true, drift, foreign: [], leaving: [], wantedReplicas: facts.wantedReplicas, replicas, updatedReplicas, readyReplicas, isObserved: true, hasExceededDeadline,
        selector: "", image: "", templateHash: facts.hash, problem,
      },
    };
  }

  async applyWorkers(desired: DesiredWorkers): Promise<Done> {
    const { workers } = this.#options;
    if (workers === undefined) return refusedForLooking;
    workers.pool.want(poolPlan(desired.spec, workers.surroundings));
    return { kind: "done" };
  }

  async removeWorkers(): Promise<Done> {
    const { workers } = this.#options;
    if (workers === undefined) return refusedForLooking;
    await workers.pool.stop();
    return { kind: "done" };
  }

  /** A file holds nothing in deletion: a resource whose file is gone has let go of its streams, which stay. */
  async setFinalizer(): Promise<Done> {
    return { kind: "done" };
  }

  /** The lock of the state folder is the lead, and it is held for life. */
  async confirmLead(): Promise<Done> {
    return { kind: "done" };
  }

  async writeStatus(resource: Pick<ObservedResource, "key" | "uid" | "resourceVersion">, status: DurableTimerStatus): Promise<Done> {
    if (this.#options.workers === undefined) return refusedForLooking;
    const before = this.#options.resource.read(resource.key);
    const done = this.#options.resource.writeStatus(resource, status);
    if (done.kind === "failed") return done;
    const had = before.kind === "found" ? before.resource.status?.conditions : undefined;
    for (const condition of turnedConditions(had ?? [], status.conditions ?? [])) this.#options.onNotice({ kind: "condition_turned", condition });
    return done;
  }

  async emitEvent(_resource: Pick<ObservedResource, "key" | "uid">, event: ResourceEvent): Promise<void> {
    this.#options.onNotice({ kind: "event", event });
  }

  /** Tells the watcher that the workers may have changed. */
  workersChanged(): void {
    this.#changes.dispatchEvent(new Event("workers"));
  }

  async watch({ onKey, signal }: { readonly onKey: (key: ResourceKey) => void; readonly signal: AbortSignal }): Promise<void> {
    const { clock, resource, secretsFolder } = this.#options;
    const tellOwn = (): void => {
      if (resource.key !== undefined) onKey(resource.key);
    };
    this.#changes.addEventListener("workers", tellOwn, { signal });
    resource.refresh();
    tellOwn();
    for (let seen = secretsMark(resource, secretsFolder); !signal.aborted; await clock.sleep(filePollIntervalMs, signal)) {
      for (const key of resource.refresh()) onKey(key);
      const mark = secretsMark(resource, secretsFolder);
      if (mark !== seen) tellOwn();
      seen = mark;
    }
  }
}

const refusedForLooking: Done = { kind: "failed", failure: new Failure("denied", "CLUSTER_DENIED", "change something through a cluster that is only looked at") };

/** Conditions that a person should see: those whose status or reason is another one now; the summary after its parts. */
function turnedConditions(before: readonly Condition[], after: readonly Condition[]): readonly Condition[] {
  const turned = after.filter((condition) => {
    const had = before.find(({ type }) => type === condition.type);
    if (had === undefined) return condition.status !== "Unknown";
    return had.status !== condition.status || had.reason !== condition.reason;
  });
  return [...turned.filter(({ type }) => type !== "Ready"), ...turned.filter(({ type }) => type === "Ready")];
}

/** Changes whenever a file of a Secret does. */
function secretsMark(resource: LocalResource, folder: string): string {
  const files = resource.spec === undefined ? [] : secretFiles(resource.spec, folder);
  return files.map((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? "absent" : `${String(stat.mtimeMs)}:${String(stat.size)}`;
  }).join(" ");
}
