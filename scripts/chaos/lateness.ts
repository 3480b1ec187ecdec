// How late resumes were: from due to the first stored copy, on the broker's clock.

import type { ResumeCopy } from "../../test/faults/ledger.ts";

/** In milliseconds. */
export type Lateness = { readonly count: number; readonly p50: number; readonly p95: number; readonly p99: number; readonly most: number };

/** Of all resumes, and of those that were due when the last disturbance was long over. */
export function latenessOf(copies: readonly ResumeCopy[], { quietAfterMs }: { readonly quietAfterMs: number }): { readonly quiet: Lateness; readonly all: Lateness } {
  const first = new Map<string, ResumeCopy>();
  for (const copy of copies) {
    const name = `${copy.ref} ${String(copy.generation)}`;
    const known = first.get(name);
    if (known === undefined || copy.storedAtMs < known.storedAtMs) first.set(name, copy);
  }
  const all = [...first.values()];
  return { all: summary(all), quiet: summary(all.filter(({ dueAtMs }) => dueAtMs >= quietAfterMs)) };
}

function summary(copies: readonly ResumeCopy[]): Lateness {
  const sorted = copies.map(({ storedAtMs, dueAtMs }) => storedAtMs - dueAtMs).sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), most: sorted.at(-1) ?? 0 };
}
