/**
 * Judges the two consumers that can be held: the resume consumer (gate ResumeOpen) and the start consumer (a declared
 * stop of admission).
 *
 * 1. A pause says itself who set it. One that the spec asks for ends at `statedPauseUntilMs`, an instant that nobody
 *    would choose by chance; the pause of a new resume consumer ends within twice `resumePauseMs`. Any other is somebody
 *    else's: it is shown and never undone.
 *    While something is lost that nobody has accepted, the start consumer is held in the same way.
 * 2. Without an operator the pause of a new resume consumer ends by itself. A consumer seen unpaused was opened.
 * 3. After the first opening only the spec closes it again: a later loss of workers or broker does not.
 */
import { resumePauseMs } from "../../base/limits.ts";
import { later } from "../../base/units.ts";
import type { DurationMs, EpochMs } from "../../base/units.ts";
import { gateTypes } from "../../resource/conditions.ts";
import type { WantedCondition } from "../../resource/conditions.ts";
import type { DurableTimerSpec, DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { Action } from "./action.ts";
import type { ReachedBroker } from "./broker.ts";
import type { ConsumerFacts, ConsumerRole, Observed } from "./observed.ts";
import { cause, statusOf, want } from "./verdict.ts";
import type { Cause, Verdict } from "./verdict.ts";

/** End of every pause that a spec asks for. Far enough to outlast any absence of the operator, and within NATS's range. */
export const statedPauseUntilMs = Date.UTC(2200, 0, 1) as EpochMs;

/** The gate ResumeOpen, and what the status remembers of it. */
export type ResumeVerdict = Verdict & { readonly resume: DurableTimerStatus["resume"] };

/** The pause with which a consumer is created; undefined when it starts open. */
export function creationPause(role: ConsumerRole, { resource }: Observed, brokerTimeMs: EpochMs): EpochMs | undefined {
  if (isStopStated(role, resource.spec)) return statedPauseUntilMs;
  const isFirst = role === "resume" && resource.status?.resume?.everOpened !== true;
  return isFirst ? later(brokerTimeMs, resumePauseMs) : undefined;
}

/** Judges the resume consumer, after the gates before it. */
export function judgeResume(observed: Observed, broker: ReachedBroker, before: readonly WantedCondition[]): ResumeVerdict {
  const had = observed.resource.status?.resume;
  const waiting = waitingFor(before);
  const looked = broker.consumers.resume;
  if (looked.kind !== "found") return { ...closed(waiting ?? cause("WaitingForTopology")), resume: had };
  const { everOpened, ...verdict } = judgeConsumer(observed, broker, { consumer: looked.value, waiting });
  return { ...verdict, resume: { consumer: looked.value.name, everOpened: everOpened ?? had?.everOpened ?? false } };
}

/** `everOpened` when this look tells; else the last status stands. */
type ConsumerVerdict = Verdict & { readonly everOpened?: boolean };

type Opening = { readonly consumer: ConsumerFacts; readonly waiting: Cause | undefined };

function judgeConsumer(observed: Observed, broker: ReachedBroker, { consumer, waiting }: Opening): ConsumerVerdict {
  const everOpened = observed.resource.status?.resume?.everOpened ?? false;
  const pause = pauseKind(consumer, broker.brokerTimeMs);
  if (isStopStated("resume", observed.resource.spec)) return statedStop(consumer, pause);
  switch (pause) {
    case "none":
      return { wanted: [want("ResumeOpen", "True", cause("Open"))], actions: [], everOpened: true };
    case "stated":
      return liftStated({ consumer, waiting: everOpened ? undefined : waiting }, broker.brokerTimeMs);
    case "startup":
      return everOpened ? foreignPause() : judgeStartup({ consumer, waiting }, broker.brokerTimeMs);
    case "foreign":
      return foreignPause();
  }
}

/** Whether starts are held, and why. */
type StartPause = { readonly actions: readonly Action[]; readonly held?: Cause };

/** What the start consumer needs for `spec.admission.state` and for an open incident, and whether somebody else holds it. */
export function judgeStartPause(observed: Observed, broker: ReachedBroker, isIncidentOpen: boolean): StartPause {
  const looked = broker.consumers.start;
  const held = startStop(observed, isIncidentOpen);
  if (looked.kind !== "found") return { actions: [], ...(held === undefined ? {} : { held }) };
  const pause = pauseKind(looked.value, broker.brokerTimeMs);
  if (held !== undefined) {
    return { actions: pause === "stated" ? [] : [pauseAction("start", looked.value, { untilMs: statedPauseUntilMs, because: stopReason(held) })], held };
  }
  if (pause === "none") return { actions: [] };
  if (pause === "stated") return { actions: [unpauseAction("start", looked.value, "spec.admission.state is Open and no incident is")] };
  return { actions: [], held: cause("ConsumerPaused", `Somebody paused the consumer ${looked.value.name} on the broker; the operator does not undo it.`) };
}

function startStop({ resource }: Observed, isIncidentOpen: boolean): Cause | undefined {
  if (isStopStated("start", resource.spec)) return cause("ClosedBySpec", "spec.admission.state is Closed: starts wait in their stream.");
  return isIncidentOpen ? cause("ClosedByIncident", "Something was lost: starts wait in their stream until a person has acknowledged it.") : undefined;
}

function stopReason({ reason }: Cause): string {
  return reason === "ClosedBySpec" ? "spec.admission.state is Closed" : "of an open incident";
}

type Pause = "none" | "stated" | "startup" | "foreign";

function pauseKind(consumer: ConsumerFacts, brokerTimeMs: EpochMs): Pause {
  if (!consumer.isPaused || consumer.pausedUntilMs === undefined) return "none";
  if (consumer.pausedUntilMs === statedPauseUntilMs) return "stated";
  // Twice, because the clocks of the servers that set and that tell the pause may differ.
  return consumer.pausedUntilMs <= later(brokerTimeMs, (2 * resumePauseMs) as DurationMs) ? "startup" : "foreign";
}

function isStopStated(role: ConsumerRole, spec: DurableTimerSpec): boolean {
  if (role === "resume") return spec.resume.state === "Paused";
  return role === "start" && spec.admission.state === "Closed";
}

function statedStop(consumer: ConsumerFacts, pause: Pause): ConsumerVerdict {
  const actions = pause === "stated" ? [] : [pauseAction("resume", consumer, { untilMs: statedPauseUntilMs, because: "spec.resume.state is Paused" })];
  const because = cause("ResumePaused", "spec.resume.state is Paused: resumes are stored and not delivered.");
  return { ...closed(because), actions };
}

/** The spec no longer asks for its pause: open, or go back to waiting for the gates if it never was open. */
function liftStated({ consumer, waiting }: Opening, brokerTimeMs: EpochMs): ConsumerVerdict {
  if (waiting === undefined) return opening(consumer, "spec.resume.state is Open again");
  return { ...closed(waiting), actions: [pauseAction("resume", consumer, { untilMs: later(brokerTimeMs, resumePauseMs), because: "the gates before it are not open yet" })] };
}

function judgeStartup({ consumer, waiting }: Opening, brokerTimeMs: EpochMs): ConsumerVerdict {
  if (waiting === undefined) return opening(consumer, "every gate before it is open");
  const remainingMs = (consumer.pausedUntilMs ?? 0) - brokerTimeMs;
  // Half of the pause is left for the next passes, so that a settled wait costs one write in five minutes.
  const isDue = remainingMs < resumePauseMs / 2;
  return { ...closed(waiting), actions: isDue ? [pauseAction("resume", consumer, { untilMs: later(brokerTimeMs, resumePauseMs), because: "the gates before it are not open yet" })] : [] };
}

function opening(consumer: ConsumerFacts, because: string): ConsumerVerdict {
  return { ...closed(cause("Provisioning")), actions: [unpauseAction("resume", consumer, because)] };
}

function closed(because: Cause): ConsumerVerdict {
  return { wanted: [want("ResumeOpen", "False", because)], actions: [] };
}

function foreignPause(): ConsumerVerdict {
  return closed(cause("ResumePaused", "Somebody paused the resume consumer on the broker; the operator does not undo it."));
}

/** What the opening waits for; undefined when every gate before it is True. */
function waitingFor(before: readonly WantedCondition[]): Cause | undefined {
  const gate = gateTypes.find((type) => type !== "ResumeOpen" && statusOf(before, type) !== "True");
  if (gate === undefined) return undefined;
  return cause(gate === "WorkersReady" ? "WaitingForWorkers" : "WaitingForTopology");
}

function pauseAction(role: "resume" | "start", { stream, name }: ConsumerFacts, pause: { readonly untilMs: EpochMs; readonly because: string }): Action {
  return { kind: "PauseConsumer", role, stream, consumer: name, ...pause };
}

function unpauseAction(role: "resume" | "start", { stream, name }: ConsumerFacts, because: string): Action {
  return { kind: "UnpauseConsumer", role, stream, consumer: name, because };
}
