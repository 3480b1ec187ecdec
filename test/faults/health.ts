/** A worker process's own word on its health: the port is in its first line of log. */
import type { WorkerProcess } from "../worker/world.ts";

/** What the endpoint answers. */
export async function healthOf(worker: WorkerProcess, path: "/livez" | "/readyz" | "/metrics"): Promise<{ readonly status: number; readonly text: string }> {
  const port = worker.lines.map((line) => /"healthPort":(\d+)/.exec(line)?.[1]).find((found) => found !== undefined);
  if (port === undefined) throw new Error("the worker did not tell its port");
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(10_000) });
  return { status: response.status, text: await response.text() };
}
