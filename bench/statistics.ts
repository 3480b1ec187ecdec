// Order statistics of measured values.

/** The value below which `part` of all values lie, by rank; undefined of nothing. `sorted` is in ascending order. */
export function quantile(sorted: readonly number[], part: number): number | undefined {
  return sorted[Math.max(0, Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1))];
}

/** The middle one; of an even number the lower of the two. */
export function median(values: readonly number[]): number | undefined {
  return quantile(values.toSorted((a, b) => a - b), 0.5);
}

/** One digit behind the point. */
export function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 10) / 10;
}
