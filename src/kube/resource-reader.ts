/** Turns a stored DurableTimer into what the operator observes. */
import { Failure } from "../base/failure.ts";
import type { EpochMs } from "../base/units.ts";
import type { ObservedResource } from "../operator/plan/observed.ts";
import type { ReadResource } from "../operator/ports.ts";
import { describeProblem, problemsOf } from "../resource/problems.ts";
import { statusSchema } from "../resource/status.ts";
import { parseSpec } from "../resource/validate.ts";
import type { KubeObject } from "./objects.ts";

/** A DurableTimer as the API server sends it, unchecked. */
export type StoredTimer = KubeObject & { readonly spec?: unknown; readonly status?: unknown };

/**
 * The resource with its spec checked and its defaults filled in. A status that cannot be read is a failure and not an absent
 * one: what it says of earlier data protects that data.
 */
export function observedResource(stored: StoredTimer): ReadResource {
  const status = stored.status === undefined ? undefined : statusSchema.safeParse(stored.status, { reportInput: true });
  if (status?.success === false) {
    const problems = problemsOf(status.error, ["status"]).map(describeProblem);
    // Nothing is done for a resource that is being deleted and cannot be read, but to let it go.
    if (stored.metadata.deletionTimestamp !== undefined) return { kind: "invalid", resource: identityOf(stored), problems };
    const cause = new Error(problems.join("; "));
    return { kind: "failed", failure: new Failure("invalid", "RESOURCE_INVALID", `read the status of ${stored.metadata.name}`, { cause }) };
  }
  const resource = { ...identityOf(stored), ...(status === undefined ? {} : { status: status.data }) };
  const parsed = parseSpec(stored.spec);
  if (parsed.ok) return { kind: "found", resource: { ...resource, spec: parsed.spec } };
  return { kind: "invalid", resource, problems: parsed.problems.map(describeProblem).sort() };
}

function identityOf({ metadata }: StoredTimer): Omit<ObservedResource, "spec" | "status"> {
  return {
    key: { namespace: metadata.namespace ?? "", name: metadata.name },
    uid: metadata.uid,
    generation: metadata.generation ?? 0,
    resourceVersion: metadata.resourceVersion,
    isDeletionRequested: metadata.deletionTimestamp !== undefined,
    ...(metadata.deletionTimestamp === undefined ? {} : { deletionRequestedAtMs: Date.parse(metadata.deletionTimestamp) as EpochMs }),
    finalizers: metadata.finalizers ?? [],
    annotations: metadata.annotations ?? {},
  };
}
