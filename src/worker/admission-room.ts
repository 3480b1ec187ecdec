/**
 * How many starts may still be taken before usage has to be looked at again.
 *
 * A look is seconds old when nothing moves, and a burst of small starts fills a small stream within one: then the archive
 * of what was taken does not fit, or a full STATE refuses even the ends that would make room in it. So every start is held
 * against the room that the last look has left, and only a share of that is given away, since other workers give away theirs.
 *
 * M1 What was taken counts until a look has begun after it was written.
 * M2 A single start may take all that is left: events as large as a small stream must still get in.
 */
import { debtsOf, startCost, type Amounts, type StartSize } from "./admission-decide.ts";
import type { Usage } from "./ports.ts";

/** Starts that may be written; to be told when they were, or were not. */
export type Pass = { readonly count: number; readonly done: (atMs: number) => void };

type Spent = { readonly cost: Amounts; endedAtMs?: number };

/** The room of the last look, and what was given away of it since. */
export class AdmissionRoom {
  #room: Amounts | undefined;
  #replicas = 1;
  readonly #spent = new Set<Spent>();

  /** A look that began at `beganAtMs` of the monotonic clock; without usage there is no room. */
  looked(usage: Usage | undefined, beganAtMs: number): void {
    for (const spent of this.#spent) if (spent.endedAtMs !== undefined && spent.endedAtMs < beganAtMs) this.#spent.delete(spent);
    this.#room = usage === undefined ? undefined : roomOf(usage);
    this.#replicas = usage?.account.replicas ?? 1;
  }

  /** As many of the starts, in order, as there is room for. */
  take(sizes: readonly StartSize[]): Pass {
    const { count, cost } = this.#fitting(sizes);
    if (count === 0) return nothing;
    const spent: Spent = { cost };
    this.#spent.add(spent);
    return { count, done: (atMs) => { spent.endedAtMs = atMs; } };
  }

  /** True when there is room for all of them. */
  fits(sizes: readonly StartSize[]): boolean {
    return this.#fitting(sizes).count === sizes.length;
  }

  #fitting(sizes: readonly StartSize[]): { readonly count: number; readonly cost: Amounts } {
    const room = this.#room;
    let cost = none;
    let count = 0;
    if (room === undefined) return { count, cost };
    const before = sum([...this.#spent].map((spent) => spent.cost));
    for (const size of sizes) {
      const next = sum([cost, startCost(size, this.#replicas)]);
      const isFirst = count === 0 && this.#spent.size === 0;
      if (!isWithin(sum([before, next]), room, isFirst ? 1 : roomShare)) break;
      cost = next;
      count += 1;
    }
    return { count, cost };
  }
}

const nothing: Pass = { count: 0, done: () => undefined };
const none: Amounts = { state: 0, snapshots: 0, terminals: 0, account: 0 };

function roomOf(usage: Usage): Amounts {
  const debts = debtsOf(usage);
  const left = (part: keyof Amounts): number => {
    const { bytes, bytesMax } = usage[part];
    return bytesMax === undefined ? Infinity : bytesMax - bytes - debts[part];
  };
  return { state: left("state"), snapshots: left("snapshots"), terminals: left("terminals"), account: left("account") };
}

function sum(all: readonly Amounts[]): Amounts {
  const of = (part: keyof Amounts): number => all.reduce((total, one) => total + one[part], 0);
  return { state: of("state"), snapshots: of("snapshots"), terminals: of("terminals"), account: of("account") };
}

function isWithin(cost: Amounts, room: Amounts, share: number): boolean {
  return (["state", "snapshots", "terminals", "account"] as const).every((part) => cost[part] <= room[part] * share);
}

/** Of what is left, to one worker between two looks. */
const roomShare = 1 / 8;
