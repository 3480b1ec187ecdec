/** Calls of a real API server, and the sockets that they take. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { clusterCallTimeoutMs } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { kubeApi, type KubeApi } from "../../src/kube/api.ts";
import { KubeConnection } from "../../src/kube/connection.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import { createNamespace, type TestNamespace } from "./namespace.ts";

let namespace: TestNamespace;
let connection: KubeConnection;
let api: KubeApi;
let path: string;

beforeAll(async () => {
  namespace = await createNamespace(inject("kubeconfigPath"), "api");
  connection = new KubeConnection({ kind: "file", path: await namespace.accountWith("caller", [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list", "create", "get"] }]) });
  api = kubeApi(connection);
  path = `/api/v1/namespaces/${namespace.name}/configmaps`;
});

afterAll(async () => {
  await connection.close();
  await namespace.delete();
});

test("objects go there and come back as plain JSON, unknown fields included", async () => {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "plain", annotations: { "example.com/x": "ä" } }, data: { key: "value" } };
  expect(await api.call({ method: "POST", path, body })).toMatchObject({ kind: "ok", value: { ...body, metadata: { ...body.metadata, creationTimestamp: expect.any(String) as string } } });
  expect(await api.call({ method: "GET", path, query: { labelSelector: "a in (b, c)", limit: "1" } })).toMatchObject({ kind: "ok", value: { items: [] } });
});

test("what the server refuses is a failure of its kind", async () => {
  expect(await api.call({ method: "GET", path: `${path}/none` })).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "CLUSTER_MISSING" } });
  expect(await api.call({ method: "DELETE", path: `${path}/none` })).toMatchObject({ kind: "failed", failure: { kind: "denied", code: "CLUSTER_DENIED" } });
  expect(await api.call({ method: "POST", path, body: { metadata: { name: "No Name" } } })).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "CLUSTER_INVALID" } });
  expect(await api.stream({ path: `${path}-x`, query: { watch: "true" } })).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_DENIED" } });
});

test("a call or a stream that is given up is no news of the server", async () => {
  const signal = AbortSignal.abort();
  expect(await api.call({ method: "GET", path, signal })).toMatchObject({ kind: "failed", failure: { code: "STOPPED" } });
  expect(await api.stream({ path, signal })).toMatchObject({ kind: "failed", failure: { code: "STOPPED" } });
});

test("a server that accepts and says nothing is given up in time", async () => {
  const proxy = await startCountingProxy(inject("kubeconfigPath"));
  const silent = new KubeConnection({ kind: "file", path: proxy.kubeconfigPath });
  const hasty = kubeApi(silent, (clusterCallTimeoutMs / 20) as DurationMs);
  proxy.hang();
  expect(await hasty.call({ method: "GET", path })).toMatchObject({ kind: "failed", failure: { kind: "transient", code: "CLUSTER_UNREACHABLE" } });
  expect(await hasty.stream({ path })).toMatchObject({ kind: "failed", failure: { kind: "transient", code: "CLUSTER_UNREACHABLE" } });
  await silent.close();
  await proxy.stop();
});

test("where nobody listens, nothing is learnt", async () => {
  const proxy = await startCountingProxy(inject("kubeconfigPath"));
  const nowhere = new KubeConnection({ kind: "file", path: proxy.kubeconfigPath });
  await proxy.stop();
  expect(await kubeApi(nowhere).call({ method: "GET", path })).toMatchObject({ kind: "failed", failure: { kind: "transient", code: "CLUSTER_UNREACHABLE" } });
  expect(await kubeApi(nowhere).stream({ path })).toMatchObject({ kind: "failed", failure: { kind: "transient", code: "CLUSTER_UNREACHABLE" } });
  await nowhere.close();
});
