// Starts the servers under measurement, each on loopback, a free port and a temporary folder, and stops them again.

import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openWorld } from "../test/worker/world.ts";
import type { Target } from "./measure.ts";

/** A running set of servers: where it is, and the processes whose use is counted. */
export type Service = AsyncDisposable & { readonly target: Target; readonly pids: readonly number[] };

/** A system that is not there: what it needs. */
export class NotInstalled extends Error {}

/** This product: NATS with every write synchronised, its topology, and worker processes. */
export async function startDurableTimer({ replicas, workerCount }: { readonly replicas: 1 | 3; readonly workerCount: number }): Promise<Service> {
  const sizes = Object.fromEntries(["state", "commands", "feedback", "snapshots", "terminals", "resumes"].map((role) => [role, "2Gi"]));
  const world = await openWorld({ count: replicas, sizes });
  const workers = await Promise.all(Array.from({ length: workerCount }, () => world.spawnWorker()));
  const pids = [...world.servers.servers.map(({ pid }) => pid), ...workers.map(({ child }) => child.pid ?? 0)];
  return { target: { system: "durable-timer", servers: world.servers.urls, replicas }, pids, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

/** NATS as above, and nothing else. */
export async function startNats(replicas: 1 | 3): Promise<Service> {
  const world = await openWorld({ count: replicas });
  return { target: { system: "nats-schedules", servers: world.servers.urls, replicas }, pids: world.servers.servers.map(({ pid }) => pid), [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

/** Redis that synchronises its log at every write. */
export async function startRedis(): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), "bench-redis-"));
  const port = await freePort();
  const child = start("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction"]);
  await answers(port, child, "redis-server (Debian: redis-server)");
  return { target: { system: "bullmq", port }, pids: [child.pid ?? 0], [Symbol.asyncDispose]: () => end(child, folder) };
}

/** PostgreSQL with its default durability; it refuses to run as root, so then as `nobody`. */
export async function startPostgres(system: "postgres" | "pg-boss" | "graphile-worker"): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), "bench-postgres-"));
  const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
  if (user.uid !== undefined) chownSync(folder, nobody, nobody);
  const made = spawnSync("initdb", ["-D", folder, "-U", "bench", "--auth=trust"], { ...user, encoding: "utf8", cwd: folder });
  if (made.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    throw new NotInstalled(`initdb and postgres on the PATH (Debian: postgresql): ${made.error?.message ?? made.stderr}`);
  }
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", "max_connections=200", "shared_buffers=512MB", "fsync=on", "synchronous_commit=on", "max_wal_size=4GB", `unix_socket_directories=${folder}`];
  const child = start("postgres", ["-D", folder, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])], { ...user, cwd: folder });
  await answers(port, child, "postgres (Debian: postgresql)");
  // It listens a moment before it takes work.
  await sleep(1_000);
  return { target: { system, connectionString: `postgres://bench@127.0.0.1:${String(port)}/postgres` }, pids: [child.pid ?? 0], [Symbol.asyncDispose]: () => end(child, folder, "SIGINT") };
}

const nobody = 65_534;

function start(command: string, args: readonly string[], options: object = {}): ChildProcess {
  const child = spawn(command, [...args], { stdio: "ignore", ...options });
  // A program that is not there shows as one that never answers.
  child.on("error", () => undefined);
  return child;
}

async function end(child: ChildProcess, folder: string, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
  rmSync(folder, { recursive: true, force: true });
}

async function answers(port: number, child: ChildProcess, what: string): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if (child.pid === undefined || child.exitCode !== null) throw new NotInstalled(what);
    if (await accepts(port)) return;
    await sleep(100);
  }
  throw new Error(`nothing answers on port ${String(port)}: ${what}`);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.on("connect", () => { socket.destroy(); resolve(true); });
    socket.on("error", () => { resolve(false); });
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("a port was asked for");
  return address.port;
}
