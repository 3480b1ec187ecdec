import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test } from "vitest";
import { healthConnectionCountMax, healthHeaderBytesMax } from "../../src/base/limits.ts";
import { openHealth, type HealthOptions, type HealthServer } from "../../src/telemetry/health.ts";
import { FakeLog } from "../fakes/log.ts";

let server: HealthServer | undefined;
afterEach(async () => { await server?.close(); });

const metrics = { contentType: "text/plain; version=0.0.4", text: () => Promise.resolve("up 1\n") };

async function open(changes: Partial<HealthOptions> = {}): Promise<string> {
  server = await openHealth({ port: 0, host: "127.0.0.1", live: () => [], ready: () => [], metrics, log: new FakeLog(), ...changes });
  return `http://127.0.0.1:${String(server.port)}`;
}

async function get(url: string, init?: RequestInit) {
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text(), type: response.headers.get("content-type") };
}

/** Sends bytes as they are, and gives what comes back until the server closes. */
async function sendRaw(bytes: string): Promise<string> {
  const socket = connect(server?.port ?? 0, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(bytes);
  return await text(socket).catch(() => "");
}

describe("the health endpoint", () => {
  test("says ok while all is well", async () => {
    const url = await open();
    expect(await get(`${url}/livez`)).toMatchObject({ status: 200, text: "ok\n" });
    expect(await get(`${url}/readyz?verbose`)).toMatchObject({ status: 200, text: "ok\n" });
  });

  test("says what is wrong, each check by itself", async () => {
    const url = await open({ ready: () => ["stream DURABLE_TIMER_COMMANDS is missing", "consumer is missing"] });
    expect(await get(`${url}/livez`)).toMatchObject({ status: 200 });
    expect(await get(`${url}/readyz`)).toMatchObject({ status: 503, text: "stream DURABLE_TIMER_COMMANDS is missing\nconsumer is missing\n" });
  });

  test("asks at each request", async () => {
    let problems: readonly string[] = [];
    const url = await open({ live: () => problems });
    expect((await get(`${url}/livez`)).status).toBe(200);
    problems = ["loop wake hangs"];
    expect((await get(`${url}/livez`)).status).toBe(503);
  });

  test("serves metrics in their own type", async () => {
    const url = await open();
    expect(await get(`${url}/metrics`)).toEqual({ status: 200, text: "up 1\n", type: "text/plain; version=0.0.4" });
  });

  test("answers a HEAD without a body, and nothing but GET and HEAD", async () => {
    const url = await open();
    expect(await get(`${url}/livez`, { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
    expect(await get(`${url}/livez`, { method: "POST", body: "x" })).toMatchObject({ status: 405 });
    expect(await get(`${url}/else`)).toMatchObject({ status: 404 });
  });

  test("a check that throws is an error of that request only", async () => {
    const log = new FakeLog();
    const url = await open({ log, metrics: { ...metrics, text: () => Promise.reject(new Error("no metrics")) } });
    expect(await get(`${url}/metrics`)).toMatchObject({ status: 500, text: "internal error\n" });
    expect((await get(`${url}/livez`)).status).toBe(200);
    expect(log.messages("error")).toEqual(["Answered a health request with an error"]);
  });

  test("refuses headers beyond the limit", async () => {
    await open();
    expect(await sendRaw(`GET /livez HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(healthHeaderBytesMax)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431/);
  });

  test("ends a request that does not arrive in time", async () => {
    await open();
    expect(await sendRaw("GET /livez HTTP/1.1\r\nhost:")).toMatch(/^HTTP\/1.1 408/);
  });

  test("drops connections beyond the limit and goes on with the others", async () => {
    const url = await open();
    const port = server?.port ?? 0;
    const sockets = await Promise.all(Array.from({ length: healthConnectionCountMax }, () => new Promise<ReturnType<typeof connect>>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => { resolve(socket); });
    })));
    const dropped = await sendRaw("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(dropped).toBe("");
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => (await get(`${url}/livez`).catch(() => ({ status: 0 }))).status).toBe(200);
  });

  test("a port that is taken is told to the caller", async () => {
    await open();
    await expect(openHealth({ port: server?.port ?? 0, host: "127.0.0.1", live: () => [], ready: () => [], metrics, log: new FakeLog() })).rejects.toThrow("EADDRINUSE");
  });
});
