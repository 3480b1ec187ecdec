/** Signals to stop: the first asks for an orderly end, the second for an end at once. */
export function stopSignals(): { readonly stop: AbortSignal; readonly hurry: AbortSignal } {
  const stop = new AbortController();
  const hurry = new AbortController();
  const onSignal = (): void => {
    if (stop.signal.aborted) hurry.abort();
    stop.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return { stop: stop.signal, hurry: hurry.signal };
}
