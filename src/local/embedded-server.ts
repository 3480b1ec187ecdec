/**
 * The NATS server of local mode, when the resource's file names none: a child process on loopback whose store lies in the
 * state folder.
 *
 * E1 Every acknowledgement means "on disk" (`sync_interval: always`): timers survive a loss of power.
 * E2 Its port is random once and then remembered, so that clients find it again; it changes only when another program
 *    has taken it.
 * E3 When it ends by itself it is started again, with growing delays, until it is stopped.
 */
import { writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { childProbeIntervalMs, childRestartMsMax, childRestartMsMin, childSettledMs, natsStartTimeoutMs, natsStopTimeoutMs } from "../base/limits.ts";
import type { Random } from "../base/random.ts";
import { backoffMs } from "../concurrency/backoff.ts";
import { describeExit, startChild, stopChild, type Child } from "./child-process.ts";
import { answersOk, freePort, isPortFree } from "./loopback.ts";
import { serverRole, type ProcessLedger } from "./process-ledger.ts";
import { readJsonFile, writeJsonFile } from "./state-files.ts";

/** What the server tells while it lives. */
export type ServerNotice =
  | { readonly kind: "server_ready"; readonly url: string; readonly pid: number }
  | { readonly kind: "server_exited"; readonly problem: string };

export type EmbeddedServerOptions = {
  /** The nats-server program. */
  readonly program: string;
  /** Folder for its configuration and store. */
  readonly folder: string;
  readonly logFile: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly ledger: ProcessLedger;
  readonly clock: Clock;
  readonly random: Random;
  readonly onNotice: (notice: ServerNotice) => void;
};

/** Where a server listens on loopback. */
export type EmbeddedPorts = { readonly client: number; readonly monitoring: number };

/** The ports of a state folder: the remembered ones while they are free, else new ones, then remembered. */
export async function embeddedPorts(folder: string, random: Random): Promise<EmbeddedPorts> {
  const remembered = rememberedPorts(folder);
  if (remembered !== undefined && (await isPortFree(remembered.client)) && (await isPortFree(remembered.monitoring))) return remembered;
  const client = await freePort(random);
  let monitoring = await freePort(random);
  while (monitoring === client) monitoring = await freePort(random);
  writeJsonFile(join(folder, portsFile), { client, monitoring });
  return { client, monitoring };
}

/** The ports that a state folder remembers, if any. */
export function rememberedPorts(folder: string): EmbeddedPorts | undefined {
  const { client, monitoring } = (readJsonFile(join(folder, portsFile)) ?? {}) as Partial<EmbeddedPorts>;
  return typeof client === "number" && typeof monitoring === "number" ? { client, monitoring } : undefined;
}

/** Where clients reach the server on this port. */
export function embeddedUrl(port: number): string {
  return `nats://127.0.0.1:${String(port)}`;
}

/** A server that runs until it is stopped. */
export class EmbeddedServer {
  readonly url: string;
  readonly #options: EmbeddedServerOptions;
  readonly #ports: EmbeddedPorts;
  readonly #stopping = new AbortController();
  readonly #hurry = new AbortController();
  #child: Child | undefined;
  #supervision: Promise<void> = Promise.resolve();

  private constructor(options: EmbeddedServerOptions, ports: EmbeddedPorts) {
    this.#options = options;
    this.#ports = ports;
    this.url = embeddedUrl(ports.client);
  }

  /** Starts a server and waits until JetStream answers. Rejects with a Failure when it does not. */
  static async start(options: EmbeddedServerOptions, ports: EmbeddedPorts): Promise<EmbeddedServer> {
    const server = new EmbeddedServer(options, ports);
    await server.#launch();
    server.#supervision = server.#supervise();
    return server;
  }

  /** A clean stop: the server writes its indexes, so that the next start is quick. Idempotent. */
  async stop(signal?: AbortSignal): Promise<void> {
    signal?.addEventListener("abort", () => this.#hurry.abort(), { once: true });
    if (signal?.aborted === true) this.#hurry.abort();
    this.#stopping.abort();
    if (this.#child !== undefined) await this.#stopChild(this.#child);
    await this.#supervision;
  }

  /** Ends it without waiting. */
  kill(): void {
    this.#hurry.abort();
    this.#stopping.abort();
    this.#child?.kill();
  }

  async #launch(): Promise<void> {
    const { program, folder, logFile, environment, ledger, onNotice } = this.#options;
    mkdirSync(folder, { recursive: true });
    const configFile = join(folder, "nats-server.conf");
    writeFileSync(configFile, serverConfig(join(folder, "store"), this.#ports));
    const child = await startChild({ command: program, args: ["--config", configFile], environment }, logFile);
    this.#child = child;
    ledger.add(child.pid, serverRole);
    try {
      await this.#untilHealthy(child);
      this.#refuseWhenStopping();
    } catch (error) {
      await this.#stopChild(child);
      this.#child = undefined;
      ledger.remove(child.pid);
      throw error;
    }
    onNotice({ kind: "server_ready", url: this.url, pid: child.pid });
  }

  async #stopChild(child: Child): Promise<void> {
    await stopChild(child, { clock: this.#options.clock, graceMs: natsStopTimeoutMs, signal: this.#hurry.signal });
  }

  /** Rejects when it ends, takes too long, or is not wanted any more. */
  async #untilHealthy(child: Child): Promise<void> {
    const { clock, logFile } = this.#options;
    let ended: string | undefined;
    const watched = child.exited.then((exit) => { ended = `nats-server ${describeExit(exit)}: ${child.lastLine()}`; });
    const untilMs = clock.monotonicMs() + natsStartTimeoutMs;
    while (!(await answersOk(this.#ports.monitoring, "/healthz"))) {
      if (clock.monotonicMs() >= untilMs) {
        child.kill();
        await watched;
      }
      this.#refuseWhenStopping();
      if (ended !== undefined) throw new Failure("transient", "PROCESS_FAILED", `start the embedded NATS server (log: ${logFile})`, { cause: new Error(ended) });
      await clock.sleep(childProbeIntervalMs, this.#stopping.signal);
    }
  }

  /** A stop that came while no child was known has stopped none. */
  #refuseWhenStopping(): void {
    if (this.#stopping.signal.aborted) throw new Failure("transient", "STOPPED", "start the embedded NATS server");
  }

  async #supervise(): Promise<void> {
    const { clock, ledger, onNotice, random } = this.#options;
    const { signal } = this.#stopping;
    let failureCount = 0;
    while (this.#child !== undefined) {
      const startedAtMs = clock.monotonicMs();
      const child: Child = this.#child;
      const exit = await child.exited;
      ledger.remove(child.pid);
      this.#child = undefined;
      if (signal.aborted) return;
      onNotice({ kind: "server_exited", problem: `nats-server ${describeExit(exit)}` });
      failureCount = clock.monotonicMs() - startedAtMs >= childSettledMs ? 1 : failureCount + 1;
      await this.#relaunch(() => backoffMs({ minMs: childRestartMsMin, maxMs: childRestartMsMax }, failureCount, random.fraction()));
    }
  }

  /** Tries until a server runs again; one that ends before it is healthy counts as one more try. */
  async #relaunch(delayMs: () => ReturnType<typeof backoffMs>): Promise<void> {
    const { clock, onNotice } = this.#options;
    const { signal } = this.#stopping;
    for (await clock.sleep(delayMs(), signal); !signal.aborted; await clock.sleep(childRestartMsMax, signal)) {
      try {
        await this.#launch();
        return;
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        if (signal.aborted) return;
        onNotice({ kind: "server_exited", problem: error.message });
      }
    }
  }
}

/** File storage has no limit of its own: the sizes of the streams are the limits, and they are reserved against it. */
function serverConfig(storeDir: string, ports: EmbeddedPorts): string {
  return [
    "server_name: durable-timer-local",
    `listen: "127.0.0.1:${String(ports.client)}"`,
    `http: "127.0.0.1:${String(ports.monitoring)}"`,
    "jetstream {",
    `  store_dir: ${JSON.stringify(storeDir)}`,
    "  sync_interval: always",
    "  max_file_store: 1TB",
    "  max_memory_store: 64MB",
    "}",
    "",
  ].join("\n");
}

const portsFile = "ports.json";
