/**
 * Real NATS servers for tests: one, or a cluster of three, with JetStream on a temporary store.
 *
 * S1 Everything listens on loopback, or on the one address given, on ports outside of the range that the kernel gives to outgoing connections: a
 *    restarted server finds its ports free.
 * S2 Whoever starts servers stops them (`await using`, or `stop`); what is left when the process exits is killed there.
 * S3 Only processes started here are ever signalled, each by its own handle.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type ServerVersion = "recommended" | "floor";

export type ServersOptions = {
  readonly version?: ServerVersion;
  readonly count?: 1 | 3;
  /** The address of clients and monitoring, which must be this machine's own; 127.0.0.1 by default. Pods cannot reach that. */
  readonly host?: string;
  /** `always` makes every acknowledgement mean "on disk"; default `2m`, the server's own. */
  readonly syncInterval?: string;
  readonly maxPayload?: number;
  readonly domain?: string;
  /** Whether servers of a cluster tell clients of each other, as they do by default: such a client finds its way around a proxy. */
  readonly isAdvertised?: boolean;
  /** Bytes of file storage of the whole server. */
  readonly maxFileStore?: number;
  /** Further configuration at the top level: accounts, authorization, tls. */
  readonly config?: string;
};

/** One server process and what survives it. */
export interface NatsServer {
  readonly name: string;
  readonly url: string;
  readonly monitoringUrl: string;
  readonly storeDir: string;
  readonly isRunning: boolean;
  /** Of the present process; 0 while there is none. */
  readonly pid: number;
  /** SIGKILL, as a crash; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM, a clean stop; idempotent. */
  stop(): Promise<void>;
  /** Starts again on the same ports and store, and waits until JetStream answers. */
  start(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
  /** SIGUSR2: the server asks its clients to leave, as before a rolling restart. */
  lameDuck(): void;
  /** The last lines of its log. */
  log(): string;
}

export interface NatsServers extends AsyncDisposable {
  readonly version: ServerVersion;
  readonly servers: readonly NatsServer[];
  readonly urls: readonly string[];
  /** Kills every server and starts them again on their stores. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** Where the server of this line is: the environment's answer, else what the bootstrap keeps. */
export function serverBinary(version: ServerVersion): string {
  const { variable, folder } = binaries[version];
  const path = process.env[variable] ?? join(import.meta.dirname, "..", ".cache", "nats", folder, "nats-server");
  if (!existsSync(path)) throw new Error(`no NATS server at ${path}: run "npm run setup", or set ${variable}`);
  return path;
}

/** Starts servers and waits until JetStream answers on each. */
export async function startServers(options: ServersOptions = {}): Promise<NatsServers> {
  const version = options.version ?? "recommended";
  const baseDir = mkdtempSync(join(tmpdir(), "durable-timer-nats-"));
  const ports = await Promise.all(Array.from({ length: options.count ?? 1 }, () => freePorts(hostOf(options))));
  const plans = ports.map((own, index) => ({ own, index, all: ports, baseDir, options }));
  const servers = plans.map((plan) => new ServerProcess(serverBinary(version), plan));
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.kill()));
    rmSync(baseDir, { recursive: true, force: true });
  };
  try {
    await Promise.all(servers.map((server) => server.start()));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    version,
    servers,
    urls: servers.map(({ url }) => url),
    crash: async () => {
      await Promise.all(servers.map((server) => server.kill()));
      await Promise.all(servers.map((server) => server.start()));
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

const binaries = {
  recommended: { variable: "DURABLE_TIMER_NATS_SERVER", folder: "2.15.2" },
  floor: { variable: "DURABLE_TIMER_NATS_SERVER_FLOOR", folder: "2.14.9" },
} as const;

type Ports = { readonly client: number; readonly monitoring: number; readonly route: number };
type Plan = { readonly own: Ports; readonly index: number; readonly all: readonly Ports[]; readonly baseDir: string; readonly options: ServersOptions };

class ServerProcess implements NatsServer {
  readonly name: string;
  readonly url: string;
  readonly monitoringUrl: string;
  readonly storeDir: string;
  readonly #binary: string;
  readonly #configPath: string;
  #process: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #log = "";

  constructor(binary: string, plan: Plan) {
    this.name = `n${String(plan.index + 1)}`;
    this.url = `nats://${hostOf(plan.options)}:${String(plan.own.client)}`;
    this.monitoringUrl = `http://${hostOf(plan.options)}:${String(plan.own.monitoring)}`;
    this.storeDir = join(plan.baseDir, this.name);
    this.#binary = binary;
    this.#configPath = join(plan.baseDir, `${this.name}.conf`);
    writeFileSync(this.#configPath, configText(this.name, this.storeDir, plan));
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  async start(): Promise<void> {
    if (this.#process !== undefined) return;
    const child = spawn(this.#binary, ["-c", this.#configPath], { stdio: ["ignore", "ignore", "pipe"] });
    this.#process = child;
    running.add(child);
    child.stderr.on("data", (chunk: Buffer) => (this.#log = (this.#log + chunk.toString()).slice(-logCharsMax)));
    this.#exited = new Promise((resolve) => {
      child.once("exit", () => {
        running.delete(child);
        if (this.#process === child) this.#process = undefined;
        resolve();
      });
    });
    await this.#untilHealthy();
  }

  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#exited;
  }

  async stop(): Promise<void> {
    this.#process?.kill("SIGCONT");
    this.#process?.kill("SIGTERM");
    await this.#exited;
  }

  pause(): void {
    this.#process?.kill("SIGSTOP");
    // A thread on another core may still work for a moment, and answer what is sent right after this.
    const endAtMs = Date.now() + pauseMsMax;
    while (this.pid !== 0 && !hasStopped(this.pid) && Date.now() < endAtMs);
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  lameDuck(): void {
    this.#process?.kill("SIGUSR2");
  }

  log(): string {
    return this.#log;
  }

  async #untilHealthy(): Promise<void> {
    for (let attempt = 0; attempt < healthAttemptsMax; attempt += 1) {
      if (!this.isRunning) throw new Error(`NATS server ${this.name} ended:\n${this.#log}`);
      if (await isHealthy(this.monitoringUrl)) return;
      await new Promise((resolve) => setTimeout(resolve, healthIntervalMs));
    }
    throw new Error(`NATS server ${this.name} did not become healthy:\n${this.#log}`);
  }
}

const logCharsMax = 20_000;
const healthIntervalMs = 25;
const healthAttemptsMax = 1_200;

/** `/healthz` answers 200 once JetStream has recovered its streams and, in a cluster, knows a meta leader. */
async function isHealthy(monitoringUrl: string): Promise<boolean> {
  try {
    const response = await fetch(`${monitoringUrl}/healthz`, { signal: AbortSignal.timeout(2_000) });
    return response.ok;
  } catch {
    return false;
  }
}

function configText(name: string, storeDir: string, { own, all, options }: Plan): string {
  const { syncInterval, maxPayload, domain, maxFileStore, isAdvertised, config } = options;
  const routes = all.map(({ route }) => `nats-route://127.0.0.1:${String(route)}`).join(", ");
  const lines = [
    `server_name: ${name}`,
    `listen: ${hostOf(options)}:${String(own.client)}`,
    `http: ${hostOf(options)}:${String(own.monitoring)}`,
    `jetstream {`,
    `  store_dir: "${storeDir}"`,
    `  max_file_store: ${String(maxFileStore ?? 20 * 2 ** 30)}`,
    `  max_memory_store: ${String(2 ** 30)}`,
    ...(syncInterval === undefined ? [] : [`  sync_interval: ${syncInterval}`]),
    ...(domain === undefined ? [] : [`  domain: ${domain}`]),
    `}`,
    ...(maxPayload === undefined ? [] : [`max_payload: ${String(maxPayload)}`]),
    ...(all.length === 1 ? [] : [`cluster { name: test-${String(all[0]?.route)}, listen: 127.0.0.1:${String(own.route)}, routes: [${routes}]${isAdvertised === false ? ", no_advertise: true" : ""} }`]),
    `lame_duck_grace_period: 1s`,
    `lame_duck_duration: 30s`,
    config ?? "",
  ];
  return lines.join("\n");
}

function hostOf({ host }: ServersOptions): string {
  return host ?? "127.0.0.1";
}

async function freePorts(host: string): Promise<Ports> {
  return { client: await freePort(host), monitoring: await freePort(host), route: await freePort("127.0.0.1") };
}

/** A free port below the kernel's range for outgoing connections, never handed out twice by this process. */
async function freePort(host: string): Promise<number> {
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const port = portMin + Math.floor(Math.random() * (portMax - portMin));
    if (!handedOut.has(port) && (await canListen(host, port))) {
      handedOut.add(port);
      return port;
    }
  }
  throw new Error("no free port");
}

const portMin = 20_000;
const portMax = 32_000;
const handedOut = new Set<number>();

function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, host, () => probe.close(() => resolve(true)));
  });
}

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** The servers' own view of a stream's leader, for tests that stop it. */
export async function leaderOf(servers: NatsServers, stream: string): Promise<NatsServer> {
  for (const server of servers.servers.filter(({ isRunning }) => isRunning)) {
    const response = await fetch(`${server.monitoringUrl}/jsz?streams=true&accounts=true`, { signal: AbortSignal.timeout(5_000) });
    const leader = new RegExp(`"name":\\s*"${stream}"[\\s\\S]*?"leader":\\s*"(n\\d)"`).exec(await response.text())?.[1];
    const found = servers.servers.find(({ name }) => name === leader);
    if (found !== undefined) return found;
  }
  throw new Error(`no leader of ${stream}`);
}

/** True when no thread of a process runs any more; without /proc it is taken at the signal's word. */
function hasStopped(pid: number): boolean {
  const tasks = `/proc/${String(pid)}/task`;
  if (!existsSync(tasks)) return true;
  return readdirSync(tasks).every((task) => {
    try {
      return /\) [TtZX] /.test(readFileSync(join(tasks, task, "stat"), "utf8"));
    } catch {
      return true;
    }
  });
}

const pauseMsMax = 5_000;
