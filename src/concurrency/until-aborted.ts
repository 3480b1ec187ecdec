/** Settles once `signal` has aborted, at once if it has already; never rejects. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => { signal.addEventListener("abort", () => { resolve(); }, { once: true }); });
}
