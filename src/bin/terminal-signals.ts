/**
 * Signals of a person at a terminal: the first asks for an orderly end, one that follows later for an end at once.
 *
 * One Ctrl-C may arrive twice: a terminal sends it to every process of the group, and a runner such as npm passes its own
 * copy on. What comes within a moment of the first is therefore its echo. A closed terminal asks for an orderly end too,
 * since nothing else would stop the child processes.
 */
export function terminalSignals(): { readonly stop: AbortSignal; readonly hurry: AbortSignal } {
  const stop = new AbortController();
  const hurry = new AbortController();
  let firstAtMs: number | undefined;
  const onSignal = (): void => {
    firstAtMs ??= performance.now();
    stop.abort();
    if (performance.now() - firstAtMs > echoMsMax) hurry.abort();
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, onSignal);
  return { stop: stop.signal, hurry: hurry.signal };
}

const echoMsMax = 300;
