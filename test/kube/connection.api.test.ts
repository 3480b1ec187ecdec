/** The sockets to a real API server, and where its address comes from. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { kubeApi } from "../../src/kube/api.ts";
import { KubeConnection } from "../../src/kube/connection.ts";
import { waitUntil } from "../cluster/processes.ts";
import { startCountingProxy, type CountingProxy } from "./counting-proxy.ts";

let proxy: CountingProxy;
let connection: KubeConnection;

beforeAll(async () => {
  proxy = await startCountingProxy(inject("kubeconfigPath"));
  connection = new KubeConnection({ kind: "file", path: proxy.kubeconfigPath });
});

afterAll(async () => {
  await connection.close();
  await proxy.stop();
});

test("address and identity are those of the kubeconfig", async () => {
  expect(readFileSync(proxy.kubeconfigPath, "utf8")).toContain(connection.serverUrl);
  expect(connection.namespace).toBeUndefined();
  expect(await kubeApi(connection).call({ method: "GET", path: "/version" })).toMatchObject({ kind: "ok", value: { major: "1" } });
});

test("a kubeconfig that cannot be used is named", () => {
  for (const path of ["/nowhere/kubeconfig", import.meta.filename]) {
    expect(() => new KubeConnection({ kind: "file", path })).toThrow(expect.objectContaining({ kind: "invalid", code: "CONFIG_INVALID", message: expect.stringContaining(path) as string }));
  }
});

test("many requests share a few sockets", async () => {
  const api = kubeApi(connection);
  const call = async (): Promise<string> => (await api.call({ method: "GET", path: "/version" })).kind;
  for (let count = 0; count < 40; count += 1) expect(await call()).toBe("ok");
  expect(proxy.acceptedCount()).toBeLessThanOrEqual(2);
  for (let count = 0; count < 10; count += 1) await Promise.all(Array.from({ length: 4 }, call));
  expect(proxy.acceptedCount()).toBeLessThanOrEqual(12);
});

test("a stream that is stopped closes its socket", async () => {
  const openBefore = proxy.openCount();
  const opened = await kubeApi(connection).stream({ path: "/api/v1/namespaces", query: { watch: "true" } });
  expect(opened.kind).toBe("ok");
  if (opened.kind === "ok") {
    expect((await opened.value.read())?.length).toBeGreaterThan(0);
    opened.value.stop();
  }
  await waitUntil({ what: "its socket is closed", probe: async () => proxy.openCount() < Math.max(1, openBefore), timeoutMs: 30_000 });
});

test("closing leaves no socket behind", async () => {
  await kubeApi(connection).call({ method: "GET", path: "/version" });
  expect(proxy.openCount()).toBeGreaterThan(0);
  await connection.close();
  await waitUntil({ what: "every socket is closed", probe: async () => proxy.openCount() === 0, timeoutMs: 30_000 });
});
