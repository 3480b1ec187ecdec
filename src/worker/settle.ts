/** What becomes of a message once its work is done: acknowledged, terminated or handed back, counted and answered. */
import { unreachable } from "../base/assert.ts";
import { describeFailure } from "../base/failure.ts";
import { corruptHoldMs, redeliveryDelayMs, redeliveryDelayMsMax, rejectedTextCharsMax } from "../base/limits.ts";
import { hex } from "../base/bytes.ts";
import { since, type DurationMs } from "../base/units.ts";
import type { MalformedCommand } from "../protocol/command.ts";
import { headerNames } from "../protocol/names.ts";
import { outcomeOf, outcomeOfMalformed, type Outcome } from "../protocol/outcome.ts";
import type { InHand, LoopOptions } from "./loop-options.ts";
import type { Delivery } from "./ports.ts";
import type { StepResult } from "./step.ts";

type Settled = Exclude<StepResult, { readonly kind: "hold" | "recheck" }>;

/** Settles a message in hand by the result of its step. */
export function settle(options: LoopOptions, item: InHand, result: Settled): void {
  switch (result.kind) {
    case "done":
      return done(options, item, result);
    case "ignored":
      item.delivery.ack();
      options.metrics.settled(options.name, "ignored", 1);
      return;
    case "rejected":
      return rejected(options, item, result);
    case "hand_back":
      return handBack(options, item, result);
    case "corrupt":
      return corrupt(options, item, result);
    default:
      return unreachable(result);
  }
}

/** Rejects a command that cannot be read: it would never become readable. */
export function malformed(options: LoopOptions, delivery: Delivery, command: MalformedCommand): void {
  keepRejected(options, delivery, command);
  answer(options, command.replyTo, outcomeOfMalformed(command.code, command.problem));
  delivery.terminate(command.code);
  options.metrics.rejected(command.code, 1);
  options.metrics.settled(options.name, "malformed", 1);
}

/** Drops a message that nobody who keeps to the contract can have written. */
export function foreign(options: LoopOptions, delivery: Delivery, problem: string): void {
  options.log.warn({ loop: options.name, subject: delivery.message.subject, sequence: delivery.message.sequence, problem }, "Dropped a foreign message");
  options.metrics.settled(options.name, "malformed", 1);
  delivery.terminate("foreign");
}

function done(options: LoopOptions, item: InHand, result: Extract<Settled, { kind: "done" }>): void {
  item.delivery.ack();
  answer(options, item.replyTo, outcomeOf(item.key, result.answer));
  options.metrics.settled(options.name, result.answer.outcome, 1);
  if (options.name !== "wake" || !result.changed) return;
  const storedAtMs = options.ports.clock.lowerBoundMs();
  if (storedAtMs !== undefined) options.metrics.resumed(Math.max(0, since(storedAtMs, result.record.dueAtMs)) as DurationMs);
}

function rejected(options: LoopOptions, item: InHand, result: Extract<Settled, { kind: "rejected" }>): void {
  const { code } = result.answer;
  keepRejected(options, item.delivery, { code, problem: "" });
  answer(options, item.replyTo, outcomeOf(item.key, result.answer));
  item.delivery.terminate(code);
  options.metrics.rejected(code, 1);
  options.metrics.settled(options.name, "rejected", 1);
}

function handBack(options: LoopOptions, item: InHand, result: Extract<Settled, { kind: "hand_back" }>): void {
  // By failures, not by deliveries: a message that several workers died with has not failed once.
  const delayMs = Math.min(redeliveryDelayMsMax, redeliveryDelayMs * 2 ** Math.min(item.handBackCount, 10));
  const problem = result.failure === undefined ? undefined : describeFailure(result.failure);
  options.log.debug({ loop: options.name, ref: item.key.ref, why: result.why, problem, delayMs }, "Handed a message back");
  item.delivery.nak(delayMs as DurationMs);
  options.metrics.settled(options.name, "handed_back", 1);
}

/** A wake waits in a schedule now; a command waits here, or is refused when too many do. */
function corrupt(options: LoopOptions, item: InHand, { problem, isAside }: Extract<Settled, { kind: "corrupt" }>): void {
  options.log.error({ loop: options.name, ref: item.key.ref, flow: item.key.flow, problem }, "Set a corrupt timer aside");
  options.metrics.unreadableMet(1);
  if (isAside) {
    item.delivery.ack();
    return;
  }
  const isHeld = options.name === "wake" || (options.corruptHolds?.tryHold(options.clock.monotonicMs()) ?? true);
  if (isHeld) {
    item.delivery.nak(corruptHoldMs);
    return;
  }
  const code = "timer_unreadable";
  keepRejected(options, item.delivery, { code, problem });
  answer(options, item.replyTo, { v: 1, outcome: "rejected", code, ref: item.key.ref, problem: "what is stored of this timer cannot be read now" });
  item.delivery.terminate(code);
  options.metrics.rejected(code, 1);
  options.metrics.settled(options.name, "rejected", 1);
}

function answer(options: LoopOptions, replyTo: string | undefined, outcome: Outcome): void {
  if (replyTo !== undefined) options.ports.outcomes.send([{ replyTo, outcome }]);
}

function keepRejected(options: LoopOptions, delivery: Delivery, why: { readonly code: string; readonly problem: string }): void {
  const { subject, sequence, body, headers } = delivery.message;
  const contextHeader = headers.get(headerNames.context);
  options.ports.rejected.keep([{
    code: why.code, problem: excerpt(why.problem), subject, sequence, bodyHash: hex(options.sha256(body)),
    ...(contextHeader === undefined ? {} : { contextHeader: excerpt(contextHeader) }),
  }]);
}

/**
 * What is kept of a text that its sender chose. Unbounded, some dozen contexts of unprintable characters, which JSON
 * spells with six each, fill a small archive, and then no timer can be started any more.
 */
function excerpt(text: string): string {
  return text.slice(0, rejectedTextCharsMax).replace(/[^\x20-\x7e]/g, "?");
}

