/**
 * Rejected commands, kept for whoever looks for their cause: without their bodies, a bounded number per code, each slot
 * overwritten by the next that falls on it. Best effort: nothing waits for it, and beyond a few in flight it drops.
 *
 * A flood keeps no more than a pace per code: each of its contexts would overwrite one from a moment ago, and cost the
 * broker a durable write which others wait for.
 */
import { utf8 } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { rejectedInFlightMax, rejectedPerSecondMax, rejectedSlotCount, rejectedTtlMs } from "../base/limits.ts";
import type { MonotonicMs } from "../base/units.ts";
import { rejectedSubject } from "../protocol/names.ts";
import type { Rejected, RejectedStore } from "../worker/ports.ts";
import type { JetStream, OutgoingMessage } from "./core/jetstream.ts";

/** `onLost` hears of rejections that were not kept. */
export type RejectedTools = { readonly clock: Clock; readonly onLost: (count: number) => void };

/** Keeps contexts of rejected commands over the present session. */
export function natsRejectedStore(jetStream: JetStream, { clock, onLost }: RejectedTools): RejectedStore {
  let inFlightCount = 0;
  const paces = new Map<string, Pace>();
  const isInPace = ({ code }: Rejected): boolean => {
    const pace = refilled(paces.get(code), clock.monotonicMs());
    const mayKeep = pace.count >= 1;
    paces.set(code, { ...pace, count: pace.count - Number(mayKeep) });
    return mayKeep;
  };
  const store = async (messages: readonly OutgoingMessage[]): Promise<void> => {
    inFlightCount += messages.length;
    const outcomes = await jetStream.publish(messages);
    inFlightCount -= messages.length;
    const lostCount = outcomes.filter(({ kind }) => kind !== "stored").length;
    if (lostCount > 0) onLost(lostCount);
  };
  return {
    keep(items) {
      const kept = items.filter(isInPace).slice(0, Math.max(0, rejectedInFlightMax - inFlightCount));
      if (kept.length < items.length) onLost(items.length - kept.length);
      if (kept.length > 0) store(kept.map(messageOf)).catch(() => onLost(kept.length));
    },
  };
}

/** How many contexts of one code may be kept at an instant. */
type Pace = { readonly count: number; readonly atMs: MonotonicMs };

function refilled(pace: Pace | undefined, nowMs: MonotonicMs): Pace {
  if (pace === undefined) return { count: rejectedInFlightMax, atMs: nowMs };
  const count = pace.count + ((nowMs - pace.atMs) / 1_000) * rejectedPerSecondMax;
  return { count: Math.min(rejectedInFlightMax, count), atMs: nowMs };
}

function messageOf(rejected: Rejected): OutgoingMessage {
  const slot = hash(`${rejected.subject} ${String(rejected.sequence)}`) % rejectedSlotCount;
  return { subject: rejectedSubject(rejected.code, slot), headers: [], body: utf8(JSON.stringify({ v: 1, ...rejected })), rollup: true, ttlMs: rejectedTtlMs };
}

/** FNV-1a in 32 bits: spreads neighbours, and the same command always falls on the same slot. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}
