import { childProbeTimeoutMs } from "../base/limits.ts";

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
