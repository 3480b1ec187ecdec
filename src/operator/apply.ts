/**
 * Carries out a plan's actions one after the other. After a failure in the broker nothing more is tried there, because what
 * follows may rest on what failed. Workers and broker do not wait for each other: the plan has workers created only where
 * the topology is proven already. Nothing here decides or retries; the next pass observes what came of it.
 */
import { Failure } from "../base/failure.ts";
import type { EpochMs } from "../base/units.ts";
import { stampKeys } from "../topology/stamp.ts";
import type { Action } from "./plan/action.ts";
import { nobody } from "./plan/claims.ts";
import type { ObservedResource } from "./plan/observed.ts";
import type { BrokerSession, ClusterPort, Done, OperatorMetrics, StreamMark } from "./ports.ts";

/** Through what actions are carried out; no session when there is no way to the broker. */
export type ApplyTools = {
  readonly cluster: ClusterPort;
  /** The version of the resource that the actions are for. */
  readonly resource: Pick<ObservedResource, "key" | "uid" | "resourceVersion" | "finalizers">;
  readonly session: BrokerSession | undefined;
  readonly metrics: OperatorMetrics;
};

/** An action that failed. */
export type FailedAction = { readonly action: Action; readonly failure: Failure };

/** What came of a list of actions; those after a failed one at the same place were not tried. */
export type Applied = { readonly done: readonly Action[]; readonly failed: readonly FailedAction[] };

/** Applies `actions` in their order. */
export async function apply(tools: ApplyTools, actions: readonly Action[]): Promise<Applied> {
  const done: Action[] = [];
  const failed: FailedAction[] = [];
  for (const action of actions) {
    if (isBehind(action, failed)) continue;
    const outcome = await applyOne(tools, action);
    tools.metrics.acted(action.kind, outcome.kind);
    if (outcome.kind === "failed") failed.push({ action, failure: outcome.failure });
    else done.push(action);
  }
  return { done, failed };
}

/** True when an action failed at the place where `action` is carried out: among the workers, or in the broker. */
export function isBehind(action: Action, failed: readonly FailedAction[]): boolean {
  return failed.some((one) => isInCluster(one.action) === isInCluster(action));
}

function isInCluster({ kind }: Action): boolean {
  return kind === "ApplyWorkers" || kind === "SetFinalizer";
}

async function applyOne({ cluster, resource, session }: ApplyTools, action: Action): Promise<Done> {
  if (action.kind === "ApplyWorkers") return await cluster.applyWorkers(action.desired);
  if (action.kind === "SetFinalizer") return await cluster.setFinalizer(resource, action.isHeld);
  if (session === undefined) return { kind: "failed", failure: new Failure("transient", "BROKER_CLOSED", `${action.kind} without a session`) };
  switch (action.kind) {
    case "CreateStream":
      return await session.createStream(action.config);
    case "UpdateStream":
      return await session.updateStream(action.config);
    case "AdoptStream":
      return await session.adoptStream({ config: action.config, mark: ownerMark(action.from) });
    case "DeleteStream":
      return await deleteStream({ cluster, session }, action);
    case "PurgeStream":
      return await purgeStream({ cluster, session }, action);
    case "WriteOwnerKey":
      return await session.writeOwnerKey(action.text);
    case "CreateConsumer":
      return await session.createConsumer({ stream: action.stream, config: action.config });
    case "UpdateConsumer":
      return await session.updateConsumer({ stream: action.stream, config: action.config });
    case "PauseConsumer":
      return await session.pauseConsumer({ stream: action.stream, consumer: action.consumer, untilMs: action.untilMs });
    case "UnpauseConsumer":
      return await session.pauseConsumer({ stream: action.stream, consumer: action.consumer, untilMs: longPastMs });
  }
}

/** A process that lost its lead without noticing must not destroy what another one may be making. */
async function deleteStream({ cluster, session }: { readonly cluster: ClusterPort; readonly session: BrokerSession }, action: Extract<Action, { readonly kind: "DeleteStream" }>): Promise<Done> {
  const led = await cluster.confirmLead();
  if (led.kind === "failed") return led;
  const mayHoldMessages = action.isForced || !waitingRoles.has(action.role);
  return await session.deleteStream({ stream: action.stream, mark: { ...ownerMark(action.ownerId), [stampKeys.incarnation]: action.incarnation }, mayHoldMessages });
}

async function purgeStream({ cluster, session }: { readonly cluster: ClusterPort; readonly session: BrokerSession }, action: Extract<Action, { readonly kind: "PurgeStream" }>): Promise<Done> {
  const led = await cluster.confirmLead();
  if (led.kind === "failed") return led;
  return await session.purgeStream({ stream: action.stream, subject: action.subject, mark: ownerMark(action.ownerId) });
}

function ownerMark(ownerId: string): StreamMark {
  return { [stampKeys.ownerId]: ownerId === nobody ? undefined : ownerId };
}

/** Streams in which a message is something that still waits. */
const waitingRoles: ReadonlySet<string> = new Set(["commands", "feedback", "resumes"]);

/** A pause until an instant in the past is how a consumer is resumed. */
const longPastMs = 0 as EpochMs;
