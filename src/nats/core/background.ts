/** Runs what nobody waits for. It must not reject; if it does, that is a bug and ends the process as an uncaught error. */
export function inBackground(task: Promise<unknown>): void {
  task.then(undefined, (error: unknown) => {
    queueMicrotask(() => {
      throw error;
    });
  });
}
