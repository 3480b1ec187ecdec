/** What a call does when the server says how long to stay away: a server that answers as a test wants, over real HTTP. */
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { kubeApi, type ApiRequest, type ApiResult } from "../../src/kube/api.ts";
import { KubeConnection } from "../../src/kube/connection.ts";

type Answer = { readonly status: number; readonly retryAfter?: string };
type Bed = { readonly call: (request: ApiRequest, timeoutMs?: number) => Promise<ApiResult<unknown>>; readonly askedCount: () => number };

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Answers with each of `answers` once, and with success afterwards. */
async function serverWith(answers: readonly Answer[]): Promise<Bed> {
  const left = [...answers];
  let askedCount = 0;
  const server: Server = createServer((_, response) => {
    askedCount += 1;
    const { status, retryAfter } = left.shift() ?? { status: 200 };
    response.writeHead(status, { "content-type": "application/json", ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }) });
    response.end(JSON.stringify(status === 200 ? { ok: true } : { kind: "Status", message: "busy" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = mkdtempSync(join(tmpdir(), "retry-after-"));
  const path = join(folder, "kubeconfig");
  const port = (server.address() as AddressInfo).port;
  const config = { apiVersion: "v1", kind: "Config", "current-context": "c", clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${String(port)}`, "insecure-skip-tls-verify": true } }], users: [{ name: "u", user: { token: "t" } }], contexts: [{ name: "c", context: { cluster: "c", user: "u" } }] };
  writeFileSync(path, JSON.stringify(config));
  const connection = new KubeConnection({ kind: "file", path });
  closers.push(async () => {
    await connection.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true });
  });
  return { call: async (request, timeoutMs = 60_000) => await kubeApi(connection, timeoutMs as DurationMs).call(request), askedCount: () => askedCount };
}

const get: ApiRequest = { method: "GET", path: "/x" };
const post: ApiRequest = { method: "POST", path: "/x", body: {} };

test("an overloaded server is asked again when it says, whatever was asked", async () => {
  for (const request of [get, post]) {
    const bed = await serverWith([{ status: 429, retryAfter: "0" }, { status: 429, retryAfter: "1" }]);
    expect(await bed.call(request)).toEqual({ kind: "ok", value: { ok: true } });
    expect(bed.askedCount()).toBe(3);
  }
});

test("a write that met anything else is not repeated: it may have been done", async () => {
  const bed = await serverWith([{ status: 503, retryAfter: "0" }]);
  expect(await bed.call(post)).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_UNREACHABLE" } });
  expect(bed.askedCount()).toBe(1);
});

test("a read is repeated", async () => {
  const bed = await serverWith([{ status: 503, retryAfter: "0" }]);
  expect(await bed.call(get)).toMatchObject({ kind: "ok" });
});

test("nobody waits beyond the time limit of a call, nor without being asked to", async () => {
  const late = await serverWith([{ status: 429, retryAfter: "20" }]);
  expect(await late.call(get, 15_000)).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_OVERLOADED" }, retryAfterMs: 20_000 });
  const silent = await serverWith([{ status: 429 }]);
  expect(await silent.call(get)).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_OVERLOADED" } });
  expect([late.askedCount(), silent.askedCount()]).toEqual([1, 1]);
});
