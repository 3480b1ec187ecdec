/** What one portion may hold. */
export type PortionLimits<T> = { readonly countMax: number; readonly bytesMax: number; readonly bytesOf: (item: T) => number };

/** How many items from `from` on make one portion: at least one, however large, unless none is left. */
export function portionSize<T>(items: readonly T[], from: number, { countMax, bytesMax, bytesOf }: PortionLimits<T>): number {
  let bytes = 0;
  let at = from;
  for (; at < items.length && at - from < countMax; at += 1) {
    bytes += bytesOf(items[at] as T);
    if (at > from && bytes > bytesMax) break;
  }
  return at - from;
}

/** Consecutive portions that together are all items, in order. */
export function portionsOf<T>(items: readonly T[], limits: PortionLimits<T>): readonly (readonly T[])[] {
  const portions: (readonly T[])[] = [];
  for (let from = 0; from < items.length; from += portions.at(-1)?.length ?? 0) portions.push(items.slice(from, from + portionSize(items, from, limits)));
  return portions;
}
