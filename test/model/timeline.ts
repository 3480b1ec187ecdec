/**
 * Time for the model: real time for the conformance suite, virtual time for simulation.
 *
 * In virtual time nothing happens but what was planned, one event after the other, and everything that can follow from
 * an event without time has followed before the next one begins. So a run is a function of what was planned.
 */

/** Something that happens later. */
export interface Timeline {
  /** Milliseconds since the Unix epoch, with fractions; never goes back. */
  nowMs(): number;
  /** Calls `act` after `delayMs`, unless the returned function is called before. */
  after(delayMs: number, act: () => void): () => void;
}

/** This machine's time. */
export const realTimeline: Timeline = {
  nowMs: () => performance.timeOrigin + performance.now(),
  after: (delayMs, act) => {
    const timer = setTimeout(act, delayMs);
    return () => clearTimeout(timer);
  },
};

type Planned = { readonly atMs: number; readonly order: number; act: (() => void) | undefined };

/** When virtual time begins, unless it is told otherwise. */
export const virtualStartAtMs = Date.UTC(2030, 0, 1);

/** Time that passes only while `run` is awaited, as fast as the events of it can be worked off. */
export class VirtualTimeline implements Timeline {
  readonly #heap: Planned[] = [];
  #nowMs: number;
  #order = 0;
  #eventCount = 0;

  constructor(startAtMs: number = virtualStartAtMs) {
    this.#nowMs = startAtMs;
  }

  /** Events that have happened so far. */
  get eventCount(): number {
    return this.#eventCount;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  /** Events that will still happen. */
  plannedCount(): number {
    return this.#heap.filter(({ act }) => act !== undefined).length;
  }

  after(delayMs: number, act: () => void): () => void {
    this.#order += 1;
    // A delay below what an instant can express would never pass, and whoever plans it anew would spin.
    const planned: Planned = { atMs: this.#nowMs + (delayMs <= 0 ? 0 : Math.max(delayMsMin, delayMs)), order: this.#order, act };
    this.#push(planned);
    return () => (planned.act = undefined);
  }

  /** Lets time pass up to `untilMs`, or until `isOver` holds after an event. */
  async run(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    const wasOver = await new Promise<boolean>((resolve, reject) => {
      let isDone = false;
      let hasActed = false;
      const turn = (): void => {
        if (isDone) return;
        try {
          const isEnd = hasActed && isOver();
          hasActed = !isEnd && this.#actOnce(untilMs);
          if (hasActed) return;
          isDone = true;
          resolve(isEnd);
        } catch (error) {
          isDone = true;
          reject(new Error("an event of the simulation threw", { cause: error }));
        }
      };
      const turns = (): void => {
        for (let count = 0; count < turnCount; count += 1) setImmediate(turn);
        setImmediate(() => { if (!isDone) turns(); });
      };
      turns();
    });
    if (!wasOver) this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** The next event happens; false when there is none up to `untilMs`. */
  #actOnce(untilMs: number): boolean {
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= untilMs; next = this.#heap[0]) {
      this.#pop();
      if (next.act === undefined) continue;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.#eventCount += 1;
      next.act();
      return true;
    }
    return false;
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(planned);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(planned, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = planned;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      const smaller = right !== undefined && isBefore(right, left) ? right : left;
      if (smaller === right) child += 1;
      if (!isBefore(smaller, last)) break;
      heap[at] = smaller;
      at = child;
    }
    heap[at] = last;
  }
}

const delayMsMin = 0.002;

function isBefore(a: Planned, b: Planned): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/**
 * Between two immediates of the platform every promise that can settle without time settles; several of them at once go
 * round without a look at the operating system.
 */
const turnCount = 64;
