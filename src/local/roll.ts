/**
 * Which worker processes to start and which to stop next, as a pure function of those that run.
 *
 * R1 A change of configuration never takes away a ready worker before another one is ready in its place.
 * R2 At most one worker more than wanted runs while a change rolls through.
 * R3 What is already as wanted gives nothing to do.
 */

/** One worker process that runs, or that is between a failure and its restart. */
export type WorkerView = {
  readonly slot: string;
  /** Hash of the configuration that it was started with. */
  readonly hash: string;
  /** Ready for as long as the resource asks for. */
  readonly isAvailable: boolean;
  /** Was told to stop. */
  readonly isStopping: boolean;
};

/** What is wanted of the workers. */
export type WantedWorkers = { readonly replicas: number; readonly hash: string };

/** How many workers of the wanted configuration to start, and which slots to stop. */
export type RollStep = { readonly startCount: number; readonly stopSlots: readonly string[] };

/** The next step towards `wanted`. Calling it again after each change of a worker leads there. `workers` are oldest first. */
export function nextRollStep(workers: readonly WorkerView[], wanted: WantedWorkers): RollStep {
  const live = workers.filter(({ isStopping }) => !isStopping);
  const current = live.filter(({ hash }) => hash === wanted.hash);
  const outdated = live.filter(({ hash }) => hash !== wanted.hash);
  const surge = outdated.length > 0 && wanted.replicas > 0 ? 1 : 0;

  const unavailable = outdated.filter(({ isAvailable }) => !isAvailable);
  const availableCount = live.filter(({ isAvailable }) => isAvailable).length;
  const spareCount = Math.max(0, availableCount - wanted.replicas);
  const replaced = outdated.filter(({ isAvailable }) => isAvailable).slice(0, spareCount);
  const stopped = [...unavailable, ...replaced, ...excess(current, wanted.replicas)];

  const room = wanted.replicas + surge - (live.length - stopped.length);
  const startCount = Math.max(0, Math.min(wanted.replicas - current.length, room));
  return { startCount, stopSlots: stopped.map(({ slot }) => slot) };
}

/** Workers beyond `count`: those that serve nothing first, then the youngest. */
function excess(workers: readonly WorkerView[], count: number): readonly WorkerView[] {
  if (workers.length <= count) return [];
  const kept = [...workers.filter(({ isAvailable }) => isAvailable), ...workers.filter(({ isAvailable }) => !isAvailable)].slice(0, count);
  return workers.filter((worker) => !kept.includes(worker));
}
