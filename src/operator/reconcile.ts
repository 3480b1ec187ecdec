/**
 * One pass over one resource: read, gather, plan, apply, write the status.
 *
 * 1. A pass is complete in itself: it may be cut off anywhere, and the next one continues from what it then observes.
 * 2. At most one status write, and none when nothing changed (I15).
 * 3. Events follow what they tell of: those of actions once the action is done, those of conditions once they are stored.
 * 4. What was changed is looked at again at once, because only a look proves it.
 */
import { assert } from "../base/assert.ts";
import type { Failure } from "../base/failure.ts";
import type { Log, LogFields } from "../base/log.ts";
import type { DurationMs } from "../base/units.ts";
import { isTrue } from "../resource/conditions.ts";
import type { DurableTimerStatus } from "../resource/durable-timer.ts";
import { streamsFinalizer } from "../resource/names.ts";
import { apply, isBehind } from "./apply.ts";
import type { Applied } from "./apply.ts";
import { failureFact, gather } from "./gather.ts";
import type { GatherTools } from "./gather.ts";
import { explainAction } from "./plan/explain.ts";
import type { ObservedResource, ResourceKey } from "./plan/observed.ts";
import { plan, planAfterFailures } from "./plan/plan.ts";
import { firstStatus, invalidStatus, isSameStatus } from "./plan/status.ts";
import { actionEvent, transitionEvents } from "./plan/transitions.ts";
import type { PlannedEvent } from "./plan/transitions.ts";
import type { OperatorMetrics, ReadResource, ReconcileResult } from "./ports.ts";

/** What a pass works with. */
export type ReconcileTools = GatherTools & { readonly metrics: OperatorMetrics; readonly log: Log };

/** How a pass ended. */
export type Reconciled =
  | {
      readonly kind: Exclude<ReconcileResult, "failed">;
      /** Look again after this time; absent leaves it to the regular look. */
      readonly requeueAfterMs?: DurationMs;
      /** Status of Ready; absent when the resource is gone. */
      readonly isReady?: boolean;
      /** What was done, in words; the same twice in a row means that it has no effect. */
      readonly did?: string;
    }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Brings one resource one step closer to what its spec says. Rejects only when `signal` aborts, or for a bug. */
export async function reconcile(tools: ReconcileTools, key: ResourceKey, signal: AbortSignal): Promise<Reconciled> {
  const read = await tools.cluster.readResource(key);
  switch (read.kind) {
    case "failed":
      return read;
    case "absent":
      return await releaseGone(tools, key);
    case "invalid":
      return await reportInvalid(tools, read);
    case "found":
      return await reconcileFound(tools, read.resource, signal);
  }
}

async function reconcileFound(tools: ReconcileTools, resource: ObservedResource, signal: AbortSignal): Promise<Reconciled> {
  if ((resource.status?.conditions ?? []).length === 0) return await greet(tools, resource);
  const { observed, session } = await gather(tools, resource, signal);
  const planned = plan(observed);
  const applied = await apply({ ...tools, resource, session }, planned.actions);
  logActions(tools.log, resource.key, applied);
  const after = applied.failed.length === 0 ? planned : planAfterFailures(observed, applied.failed.map(({ action, failure }) => ({ action, failure: failureFact(failure) })));
  // Also when the status is refused: what was done is done, and no later pass would tell of it.
  await emitAll(tools, resource, applied.done.flatMap((action) => actionEvent(action) ?? []));
  if (applied.done.some(({ kind }) => kind === "SetFinalizer")) return await versioned(tools, resource, after.events);
  const written = await publish(tools, resource, after);
  if (written.kind === "failed") return written;
  const isReady = isTrue(after.status.conditions ?? [], "Ready");
  const result = conclusion(applied, { hasWritten: written.hasWritten, requeueAfterMs: planned.requeueAfterMs });
  return result.kind === "failed" ? result : { ...result, isReady };
}

/** A change of the resource itself makes another version of it, so that its status is the next pass's; or ends it, with its news. */
async function versioned(tools: ReconcileTools, resource: ObservedResource, events: readonly PlannedEvent[]): Promise<Reconciled> {
  if (resource.isDeletionRequested) await emitAll(tools, resource, events);
  return { kind: "changed", requeueAfterMs: 0 as DurationMs };
}

/** What the pass asks of the queue. */
function conclusion(applied: Applied, pass: { readonly hasWritten: boolean; readonly requeueAfterMs: DurationMs | undefined }): Reconciled {
  const { done, failed } = applied;
  // What needs other input or other rights is not retried in a hurry: the regular look sees when it was given.
  const worthRetrying = failed.find(({ failure }) => failure.kind === "transient" || failure.kind === "conflict");
  if (worthRetrying !== undefined) return { kind: "failed", failure: worthRetrying.failure };
  const isToProve = done.some((action) => !isBehind(action, failed));
  const requeueAfterMs = isToProve ? (0 as DurationMs) : pass.requeueAfterMs;
  const kind = done.length > 0 || pass.hasWritten ? "changed" : "unchanged";
  const did = done.map(explainAction).join("; ");
  return { kind, ...(did === "" ? {} : { did }), ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }) };
}

/** A person who has just applied a resource sees at once that it was noticed, however long the first look takes. */
async function greet(tools: ReconcileTools, resource: ObservedResource): Promise<Reconciled> {
  const status = firstStatus(resource, tools.clock.nowMs());
  const written = await tools.cluster.writeStatus(resource, status);
  if (written.kind === "failed") return written;
  return { kind: "changed", requeueAfterMs: 0 as DurationMs, isReady: false };
}

async function reportInvalid(tools: ReconcileTools, read: Extract<ReadResource, { readonly kind: "invalid" }>): Promise<Reconciled> {
  assert(read.problems.length > 0, "a problem of an invalid resource");
  const { resource, problems } = read;
  if (resource.isDeletionRequested && resource.finalizers?.includes(streamsFinalizer) === true) return await letGoUnread(tools, resource);
  const status = invalidStatus(resource, problems, tools.clock.nowMs());
  const written = await publish(tools, resource, { status, events: transitionEvents(resource.status, status) });
  if (written.kind === "failed") return written;
  return { kind: written.hasWritten ? "changed" : "unchanged", isReady: false };
}

/** Nobody can tell any more what was wanted of the streams; so they stay, and the deletion does not hang. */
async function letGoUnread({ cluster }: ReconcileTools, resource: Omit<ObservedResource, "spec">): Promise<Reconciled> {
  const done = await cluster.setFinalizer(resource, false);
  if (done.kind === "failed") return done;
  await cluster.emitEvent(resource, { severity: "Normal", reason: "DataRetained", message: "The streams and what they hold stay: the spec cannot be read." });
  return { kind: "changed", requeueAfterMs: 0 as DurationMs, isReady: false };
}

async function releaseGone({ cluster, sessions }: ReconcileTools, key: ResourceKey): Promise<Reconciled> {
  sessions.close(key);
  const removed = await cluster.removeWorkers(key);
  return removed.kind === "failed" ? removed : { kind: "gone" };
}

type Published = { readonly kind: "written"; readonly hasWritten: boolean } | { readonly kind: "failed"; readonly failure: Failure };

async function emitAll({ cluster }: ReconcileTools, resource: Pick<ObservedResource, "key" | "uid">, events: readonly PlannedEvent[]): Promise<void> {
  for (const event of events) await cluster.emitEvent(resource, event);
}

async function publish(
  tools: ReconcileTools,
  resource: Omit<ObservedResource, "spec">,
  { status, events }: { readonly status: DurableTimerStatus; readonly events: readonly PlannedEvent[] },
): Promise<Published> {
  const { cluster, log } = tools;
  const hasChanged = !isSameStatus(resource.status, status);
  if (hasChanged) {
    const written = await cluster.writeStatus(resource, status);
    if (written.kind === "failed") return written;
    logConditions(log, resource, status);
  }
  await emitAll(tools, resource, events);
  return { kind: "written", hasWritten: hasChanged };
}

function logActions(log: Log, key: ResourceKey, { done, failed }: Applied): void {
  for (const action of done) log.info({ ...keyFields(key), action: action.kind, because: action.because }, "Applied action");
  for (const { action, failure } of failed) {
    log.warn({ ...keyFields(key), action: action.kind, because: action.because, code: failure.code, err: failure }, "Stopped at an action");
  }
}

function logConditions(log: Log, { key, status: had }: Omit<ObservedResource, "spec">, status: DurableTimerStatus): void {
  const before = new Map(had?.conditions?.map((condition) => [condition.type, condition]));
  for (const { type, status: is, reason, message } of status.conditions ?? []) {
    const was = before.get(type);
    if (was?.status === is && was.reason === reason) continue;
    log.info({ ...keyFields(key), condition: type, status: is, reason, text: message }, "Turned a condition");
  }
}

function keyFields({ namespace, name }: ResourceKey): LogFields {
  return { namespace, name };
}
