import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { natsStartTimeoutMs, natsStopTimeoutMs } from "../../src/base/limits.ts";
import type { DurationMs, EpochMs, MonotonicMs } from "../../src/base/units.ts";
import { embeddedPorts, EmbeddedServer, embeddedUrl, rememberedPorts, type ServerNotice } from "../../src/local/embedded-server.ts";
import { isPortFree } from "../../src/local/loopback.ts";
import { ProcessLedger } from "../../src/local/process-ledger.ts";
import { readJsonFile } from "../../src/local/state-files.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { serverBinary } from "../servers.ts";
import { tempFolder } from "./temp-folder.ts";

const root = tempFolder();
const running: EmbeddedServer[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
});

async function start(name: string, program = serverBinary("recommended"), clock: Clock = systemClock) {
  const folder = join(root, name);
  const notices: ServerNotice[] = [];
  const ports = await embeddedPorts(folder, systemRandom);
  const ledgerPath = join(folder, "ledger.json");
  const server = await EmbeddedServer.start(
    { program, folder, logFile: join(folder, "server.log"), environment: {}, ledger: new ProcessLedger(ledgerPath), clock, random: systemRandom, onNotice: (notice) => { notices.push(notice); } },
    ports,
  );
  running.push(server);
  return { server, folder, notices, ports, ledgerPath };
}

describe("the embedded server", () => {
  it("listens on loopback alone, syncs each write, and keeps its store in its folder", async () => {
    const { server, folder, ports, notices, ledgerPath } = await start("a");
    const jsz = (await (await fetch(`http://127.0.0.1:${String(ports.monitoring)}/jsz`)).json()) as { readonly config: Record<string, unknown> };
    expect(jsz.config).toMatchObject({ sync_always: true, store_dir: join(folder, "store", "jetstream") });
    const varz = (await (await fetch(`http://127.0.0.1:${String(ports.monitoring)}/varz`)).json()) as Record<string, unknown>;
    expect(varz).toMatchObject({ host: "127.0.0.1", port: ports.client });
    expect(server.url).toBe(embeddedUrl(ports.client));
    expect(notices).toEqual([expect.objectContaining({ kind: "server_ready", url: server.url })]);
    expect(readJsonFile(ledgerPath)).toMatchObject({ processes: [{ role: "nats-server" }] });
    await server.stop();
    expect(await isPortFree(ports.client)).toBe(true);
    expect(readJsonFile(ledgerPath)).toEqual({ processes: [] });
  });

  it("has the same port in the next run, and another one only when that is taken", async () => {
    const folder = join(root, "b");
    const first = await embeddedPorts(folder, systemRandom);
    expect(await embeddedPorts(folder, systemRandom)).toEqual(first);
    const other = createServer().listen(first.client, "127.0.0.1");
    await once(other, "listening");
    const second = await embeddedPorts(folder, systemRandom);
    expect(second.client).not.toBe(first.client);
    expect(rememberedPorts(folder)).toEqual(second);
    other.close();
  });

  it("is started again on the same port when it is killed", async () => {
    const { server, notices } = await start("c");
    const first = notices.find(({ kind }) => kind === "server_ready");
    process.kill(first?.kind === "server_ready" ? first.pid : 0, "SIGKILL");
    await expect.poll(() => notices.map(({ kind }) => kind), { timeout: 30_000 }).toEqual(["server_ready", "server_exited", "server_ready"]);
    expect(notices[1]).toMatchObject({ problem: "nats-server was ended by SIGKILL" });
    expect(notices[2]).toMatchObject({ url: server.url });
  });

  it("that cannot start is a failure with the last words of its log", async () => {
    const folder = join(root, "d");
    const program = process.execPath;
    await expect(start("d", program)).rejects.toMatchObject({ code: "PROCESS_FAILED", message: expect.stringContaining(join(folder, "server.log")) as string });
    expect(existsSync(join(folder, "server.log"))).toBe(true);
    expect(readFileSync(join(folder, "server.log"), "utf8")).toContain("bad option");
  });

  it("that never answers is given up after the time for starting", async () => {
    const program = executable("mute", "setInterval(() => {}, 1000)");
    const clock = new HastyClock();
    clock.speed = 100;
    const beganAtMs = clock.monotonicMs();
    await expect(start("e", program, clock)).rejects.toMatchObject({ code: "PROCESS_FAILED" });
    expect(clock.monotonicMs() - beganAtMs).toBeGreaterThanOrEqual(natsStartTimeoutMs);
  });

  it("that does not stop is ended after the time for stopping", async () => {
    const program = executable("stubborn", `
      const config = require("node:fs").readFileSync(process.argv.at(-1), "utf8");
      require("node:http").createServer((_, response) => response.end()).listen(Number(/http: "127.0.0.1:(\\d+)"/.exec(config)[1]), "127.0.0.1");
      process.on("SIGTERM", () => {});`);
    const clock = new HastyClock();
    const { server, ports } = await start("f", program, clock);
    clock.speed = 100;
    const beganAtMs = clock.monotonicMs();
    await server.stop();
    expect(clock.monotonicMs() - beganAtMs).toBeGreaterThanOrEqual(natsStopTimeoutMs);
    expect(await isPortFree(ports.monitoring)).toBe(true);
  });
});

describe("an embedded server that is stopped while it is being started again", () => {
  // The second start of this one never becomes healthy; the first is killed by the test.
  const secondIsMute = (name: string): string => executable(name, `
    const fs = require("node:fs");
    const mark = ${JSON.stringify(join(root, `${name}.started`))};
    const config = fs.readFileSync(process.argv.at(-1), "utf8");
    const isFirst = !fs.existsSync(mark);
    fs.writeFileSync(mark, fs.existsSync(mark) ? "again" : "once");
    if (isFirst) require("node:http").createServer((_, response) => response.end()).listen(Number(/http: "127.0.0.1:(\\d+)"/.exec(config)[1]), "127.0.0.1");
    else setInterval(() => {}, 1000);`);

  it("leaves no process behind, and the stop ends", async () => {
    const { server, notices, ledgerPath } = await start("g", secondIsMute("relaunched"));
    const first = notices.find(({ kind }) => kind === "server_ready");
    process.kill(first?.kind === "server_ready" ? first.pid : 0, "SIGKILL");
    await expect.poll(() => readFileSync(join(root, "relaunched.started"), "utf8"), { timeout: 30_000 }).toBe("again");
    await server.stop();
    expect(readJsonFile(ledgerPath)).toEqual({ processes: [] });
  });

  it("leaves no process behind when the stop comes while the process is being created", async () => {
    const { server, notices, ledgerPath } = await start("h", secondIsMute("early"));
    const first = notices.find(({ kind }) => kind === "server_ready");
    process.kill(first?.kind === "server_ready" ? first.pid : 0, "SIGKILL");
    await expect.poll(() => notices.map(({ kind }) => kind), { timeout: 30_000 }).toContain("server_exited");
    await server.stop();
    expect(readJsonFile(ledgerPath)).toEqual({ processes: [] });
  });
});

/** A program that runs JavaScript, whatever it is given as arguments. */
function executable(name: string, script: string): string {
  const path = join(root, name);
  writeFileSync(`${path}.cjs`, script);
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${path}.cjs" "$@"\n`);
  chmodSync(path, 0o700);
  return path;
}

/** The real clock, or a faster one once `speed` is set. */
class HastyClock implements Clock {
  speed = 1;
  readonly #beganAtMs = systemClock.monotonicMs();

  nowMs(): EpochMs {
    return systemClock.nowMs();
  }

  monotonicMs(): MonotonicMs {
    return ((systemClock.monotonicMs() - this.#beganAtMs) * this.speed) as MonotonicMs;
  }

  sleep(duration: DurationMs, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep((duration / this.speed) as DurationMs, signal);
  }
}
