// Stands between a client and the API server, and counts the connections.

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readKubeconfig, writeKubeconfig } from "../cluster/kubeconfig.ts";

export type CountingProxy = {
  /** The same identity, at this proxy's address. */
  readonly kubeconfigPath: string;
  readonly acceptedCount: () => number;
  readonly openCount: () => number;
  /** From now on connections are accepted, and nothing is answered. */
  hang(): void;
  /** From now on nobody listens. */
  stop(): Promise<void>;
};

export async function startCountingProxy(kubeconfigPath: string): Promise<CountingProxy> {
  const target = await readKubeconfig(kubeconfigPath);
  const { hostname, port } = new URL(target.serverUrl);
  const open = new Set<Socket>();
  let acceptedCount = 0;
  let isHanging = false;
  const server = createServer((client) => {
    acceptedCount += 1;
    open.add(client);
    client.on("close", () => open.delete(client));
    client.on("error", () => client.destroy());
    if (isHanging) return;
    const upstream = connect(Number(port), hostname);
    client.pipe(upstream).pipe(client);
    upstream.on("error", () => client.destroy());
    client.on("close", () => upstream.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = await mkdtemp(join(tmpdir(), "durable-timer-proxy-"));
  const path = join(folder, "kubeconfig");
  await writeKubeconfig(path, { ...target, serverUrl: `https://127.0.0.1:${String((server.address() as AddressInfo).port)}` });
  const stop = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of open) socket.destroy();
    await closed;
    await rm(folder, { recursive: true, force: true });
  };
  return { kubeconfigPath: path, acceptedCount: () => acceptedCount, openCount: () => open.size, hang: () => void (isHanging = true), stop };
}
