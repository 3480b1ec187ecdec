/** Numbers of timers for the status: the last sweep's summary and the resume consumer, to two significant digits. */
import type { DurableTimerStatus } from "../../resource/durable-timer.ts";
import type { ReachedBroker } from "./broker.ts";

/** The part of the status that counts timers. */
export type TimerCounts = NonNullable<DurableTimerStatus["timers"]>;

/** What was counted; what could not be read is left out. `had` are the last counts, which stay while they are near. */
export function timerCounts(broker: ReachedBroker, had: TimerCounts | undefined): TimerCounts {
  const summary = broker.sweepSummary.kind === "found" ? parsedObject(broker.sweepSummary.value) : {};
  const counted = { waiting: summary["waiting"], awaitingFeedback: summary["elapsed"], overdue: summary["overdue"] };
  const known = Object.entries(counted).flatMap(([name, value]) => (typeof value === "number" ? [[name, coarseCount(value, had?.[name as keyof typeof counted])] as const] : []));
  return { ...Object.fromEntries(known), ...resumeCounts(broker, had?.resumesPending) };
}

/**
 * 1234567 as 1.2M: a status is not a metric, and a number that moves with every timer would be a write with every timer. So
 * that one between two steps does not write either, `had` stays while the count is less than a step away from it.
 */
export function coarseCount(count: number, had?: string): string {
  if (count < 100) return String(Math.max(0, Math.round(count)));
  if (had !== undefined && isNear(count, had)) return had;
  const rounded = Number(count.toPrecision(2));
  const unit = units.find(({ size }) => rounded >= size);
  return unit === undefined ? String(rounded) : `${String(rounded / unit.size)}${unit.suffix}`;
}

function isNear(count: number, had: string): boolean {
  const read = /^(\d+(?:\.\d+)?)([kMG]?)$/.exec(had);
  const size = units.find(({ suffix }) => suffix === read?.[2])?.size ?? 1;
  const value = Math.round(Number(read?.[1]) * size);
  if (!(value >= 100)) return false;
  return Math.abs(count - value) < 10 ** (Math.floor(Math.log10(value)) - 1);
}

const units = [
  { size: 1e9, suffix: "G" },
  { size: 1e6, suffix: "M" },
  { size: 1e3, suffix: "k" },
] as const;

function resumeCounts(broker: ReachedBroker, had: string | undefined): TimerCounts {
  const looked = broker.consumers.resume;
  if (looked.kind !== "found") return { resumePullers: "Unknown" };
  const { pending, ackPending, waitingPulls } = looked.value;
  return { resumesPending: coarseCount(pending + ackPending, had), resumePullers: waitingPulls + ackPending > 0 ? "Present" : "Absent" };
}

/** Written by workers of this or another version: anything that is not an object counts as empty. */
function parsedObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
