/** Child processes on loopback: ports for them, and their answers. */
import { createServer } from "node:net";
import { Failure } from "../base/failure.ts";
import { childProbeTimeoutMs } from "../base/limits.ts";
import type { Random } from "../base/random.ts";

/** A port that nobody listens on now. Below the range from which kernels take ports for outgoing connections. */
export async function freePort(random: Random): Promise<number> {
  for (let attempt = 0; attempt < attemptCountMax; attempt += 1) {
    const port = portMin + Math.floor(random.fraction() * (portMax - portMin));
    if (await isPortFree(port)) return port;
  }
  throw new Failure("transient", "PROCESS_FAILED", `find a free port on 127.0.0.1 between ${String(portMin)} and ${String(portMax)}`);
}

/** Whether a server could listen on this port of loopback now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => { resolve(false); });
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => { probe.close(() => { resolve(true); }); });
  });
}

/** Whether a server on loopback answers this path with success, within a bounded time. Never rejects. */
export async function answersOk(port: number, path: string): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, { signal: AbortSignal.timeout(childProbeTimeoutMs), redirect: "error" });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

const portMin = 20_000;
const portMax = 32_000;
const attemptCountMax = 1_000;
