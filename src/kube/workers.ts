/**
 * The workers' objects at the API server: what is there, and bringing it to what is wanted.
 *
 * 1. An object of the right name that the resource does not control is foreign: it is reported and never touched. One that is
 *    in deletion, or that belongs to an earlier resource of this name, goes by itself and is waited for.
 * 2. Server-side apply under one fixed manager writes only what is ours, and only when something of it differs.
 * 3. A new object is applied without force, so that somebody who was faster wins. An object that exists is applied by force
 *    and by uid, so that it is the one that was looked at.
 * 4. Nothing is deleted: the owner reference does that.
 */
import type { V1Deployment, V1Pod } from "@kubernetes/client-node";
import { describeFailure, Failure } from "../base/failure.ts";
import type { Log } from "../base/log.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { DesiredWorkers, Looked, WorkersFacts } from "../operator/plan/observed.ts";
import type { Done } from "../operator/ports.ts";
import { apiGroup, kind, workerSelector } from "../resource/names.ts";
import type { ApiResult, KubeApi } from "./api.ts";
import { driftOf } from "./manifests/drift.ts";
import { stableJson, type JsonObject } from "./manifests/json.ts";
import { hasUnreadyPods, selectorText, workersFacts } from "./manifests/worker-facts.ts";
import { renderWorkers } from "./manifests/workers.ts";
import { apiResources, collectionPath, controllerOf, fieldManager, objectPath, type KubeObject, type ObjectList, type ObjectMeta } from "./objects.ts";

export type WorkersOptions = {
  readonly api: KubeApi;
  readonly log: Log;
  readonly sha256: Sha256;
  /** Image of the workers of resources that name none. */
  readonly defaultImage: string;
};

/** One wanted object and what there is in its place. */
type Look = {
  readonly path: string;
  readonly wanted: JsonObject;
  readonly actual?: KubeObject & JsonObject;
  readonly drift: readonly string[];
  /** Whose it is: ours (also while it does not exist), somebody else's, or about to go. */
  readonly standing: "ours" | "foreign" | "leaving";
};

type Looks = { readonly kind: "looked"; readonly looks: readonly Look[] } | { readonly kind: "failed"; readonly failure: Failure };

/** Reads and applies the workers of all resources. */
export class KubeWorkers {
  readonly #options: WorkersOptions;
  /** What an apply did not bring about, by object: the server spells it otherwise, and trying for ever would not help. */
  readonly #accepted = new Map<string, string>();

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Compares what is wanted with what there is. Changes nothing. */
  async read(desired: DesiredWorkers): Promise<Looked<WorkersFacts>> {
    const looked = await this.#look(desired);
    if (looked.kind === "failed") return failedLook(looked.failure);
    const { looks } = looked;
    const own = looks.filter(({ standing }) => standing === "ours");
    if (looks.every(({ actual }) => actual === undefined)) return { kind: "absent" };
    const deployment = own.find(({ wanted, actual }) => wanted["kind"] === "Deployment" && actual !== undefined)?.actual as V1Deployment | undefined;
    const selector = workerSelector(desired.key.name);
    const unready = await this.#unreadyPods(desired, deployment);
    if (unready.kind === "failed") return failedLook(unready.failure);
    const facts = workersFacts({
      drift: own.flatMap(({ drift }) => drift).sort(),
      foreign: namesOf(looks, "foreign"),
      leaving: namesOf(looks, "leaving"),
      exists: own.some(({ actual }) => actual !== undefined),
      pods: unready.value,
      selector,
      ...(deployment === undefined ? {} : { deployment }),
    });
    return { kind: "found", value: facts };
  }

  /** Applies what differs. Idempotent. */
  async apply(desired: DesiredWorkers): Promise<Done> {
    const looked = await this.#look(desired);
    if (looked.kind === "failed") return looked;
    const foreign = namesOf(looked.looks, "foreign");
    if (foreign.length > 0) {
      return { kind: "failed", failure: new Failure("invalid", "CLUSTER_EXISTS", `apply the workers over ${foreign.join(", ")} of somebody else`) };
    }
    const leaving = namesOf(looked.looks, "leaving");
    if (leaving.length > 0) {
      return { kind: "failed", failure: new Failure("conflict", "CLUSTER_CONFLICT", `apply the workers before ${leaving.join(", ")} of before are gone`) };
    }
    for (const look of looked.looks) {
      const done = look.drift.length === 0 ? nothingToDo : await this.#applyOne(look);
      if (done.kind === "failed") return done;
    }
    return nothingToDo;
  }

  /** Forgets a resource that is gone. */
  forget(desired: { readonly namespace: string; readonly name: string }): void {
    for (const path of this.#accepted.keys()) {
      if (path.includes(`/namespaces/${desired.namespace}/`) && path.includes(`/${desired.name}-`)) this.#accepted.delete(path);
    }
  }

  async #look(desired: DesiredWorkers): Promise<Looks> {
    const { serviceAccount, podDisruptionBudget, deployment } = renderWorkers(desired, this.#options);
    const wanted = [
      { resource: apiResources.serviceAccounts, object: serviceAccount },
      { resource: apiResources.podDisruptionBudgets, object: podDisruptionBudget },
      { resource: apiResources.deployments, object: deployment },
    ];
    const looks: Look[] = [];
    for (const { resource, object } of wanted) {
      const path = objectPath(resource, { namespace: desired.key.namespace, name: object.metadata?.name ?? "" });
      const read = await this.#options.api.call<KubeObject & JsonObject>({ method: "GET", path });
      if (read.kind === "failed" && read.failure.code !== "CLUSTER_MISSING") return { kind: "failed", failure: read.failure };
      looks.push(this.#compare({ path, wanted: object as JsonObject, owner: desired }, read.kind === "ok" ? read.value : undefined));
    }
    return { kind: "looked", looks };
  }

  #compare({ path, wanted, owner }: { readonly path: string; readonly wanted: JsonObject; readonly owner: DesiredWorkers }, actual: Look["actual"]): Look {
    const found = driftOf(wanted, actual, fieldManager);
    const isAccepted = found.length > 0 && this.#accepted.get(path) === fingerprint(wanted, found);
    const standing = actual === undefined ? "ours" : standingOf(actual.metadata, owner);
    return { path, wanted, drift: isAccepted ? [] : found, standing, ...(actual === undefined ? {} : { actual }) };
  }

  async #applyOne(look: Look): Promise<Done> {
    const { api, log } = this.#options;
    const { path, wanted, actual } = look;
    const body = actual === undefined ? wanted : { ...wanted, metadata: { ...(wanted["metadata"] as JsonObject), uid: actual.metadata.uid } };
    const query = { fieldManager, force: String(actual !== undefined), fieldValidation: "Strict" };
    const applied = await api.call<JsonObject>({ method: "PATCH", path, query, body, contentType: "application/apply-patch+yaml" });
    if (applied.kind === "failed") return applied;
    const rest = driftOf(wanted, applied.value, fieldManager);
    if (rest.length > 0) log.warn({ path, fields: rest }, "Accepted what the API server made of an object");
    if (rest.length > 0) this.#accepted.set(path, fingerprint(wanted, rest));
    else this.#accepted.delete(path);
    return nothingToDo;
  }

  async #unreadyPods(desired: DesiredWorkers, deployment: V1Deployment | undefined): Promise<ApiResult<readonly V1Pod[]>> {
    if (deployment === undefined || !hasUnreadyPods(deployment)) return { kind: "ok", value: [] };
    const labelSelector = selectorText(workerSelector(desired.key.name));
    const path = collectionPath(apiResources.pods, desired.key.namespace);
    const listed = await this.#options.api.call<ObjectList<V1Pod>>({ method: "GET", path, query: { labelSelector, limit: String(podsLookedAtMax) } });
    return listed.kind === "failed" ? listed : { kind: "ok", value: listed.value.items };
  }
}

function failedLook(failure: Failure): Looked<never> {
  return { kind: "failed", failure: { kind: failure.kind, code: failure.code, message: describeFailure(failure) } };
}

/** Names are unique: when a resource of that name has our uid, the one with another uid is gone, and what it left follows it. */
function standingOf(metadata: ObjectMeta, { key, uid }: DesiredWorkers): Look["standing"] {
  const controller = controllerOf(metadata);
  if (metadata.deletionTimestamp !== undefined) return "leaving";
  if (controller?.uid === uid) return "ours";
  const isOfBefore = controller?.kind === kind && controller.name === key.name && controller.apiVersion.startsWith(`${apiGroup}/`);
  return isOfBefore ? "leaving" : "foreign";
}

function namesOf(looks: readonly Look[], standing: Look["standing"]): readonly string[] {
  return looks.filter((look) => look.standing === standing).map(nameOf).sort();
}

function nameOf({ wanted }: Look): string {
  const { name } = wanted["metadata"] as { readonly name: string };
  return `${String(wanted["kind"])} ${name}`;
}

function fingerprint(wanted: JsonObject, drift: readonly string[]): string {
  return stableJson([wanted, drift]);
}

const nothingToDo: Done = { kind: "done" };
/** Enough to find what is wrong with them. */
const podsLookedAtMax = 50;
