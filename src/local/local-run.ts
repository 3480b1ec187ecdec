/**
 * One run of local mode: a locked state folder, the resource's file, an embedded server when the file names none, and the
 * pool of workers, put together as a cluster for the operator.
 *
 * 1. What an earlier run left behind when it was killed is ended before anything is started.
 * 2. Stopping goes the other way round: workers with their grace, then the server, then the lock.
 */
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { Failure } from "../base/failure.ts";
import { natsStopTimeoutMs } from "../base/limits.ts";
import type { Random } from "../base/random.ts";
import type { DurableTimerSpec } from "../resource/durable-timer.ts";
import type { ChildCommand } from "./child-process.ts";
import { embeddedPorts, EmbeddedServer, embeddedUrl, rememberedPorts, type EmbeddedPorts, type ServerNotice } from "./embedded-server.ts";
import { LocalCluster, type ResourceNotice } from "./local-cluster.ts";
import { LocalResource, type FileNotice } from "./local-resource.ts";
import { ProcessLedger } from "./process-ledger.ts";
import { readJsonFile, writeJsonFile } from "./state-files.ts";
import { createStateFolder, folderIdentity, knownIdentity, statePaths, type StatePaths } from "./state-folder.ts";
import { stateLockHolder, takeStateLock } from "./state-lock.ts";
import { WorkerPool, type PoolFacts } from "./worker-pool.ts";
import type { WorkerNotice } from "./worker-slot.ts";

/** Everything that a person may want to see. */
export type LocalNotice =
  | FileNotice
  | ServerNotice
  | WorkerNotice
  | ResourceNotice
  | { readonly kind: "leftover_stopped"; readonly role: string; readonly pid: number }
  /** Another program has the port on which clients know the embedded server. */
  | { readonly kind: "port_moved"; readonly from: number; readonly to: number };

/** Which resource to run, and where. */
export type LocalPlace = {
  readonly filePath: string;
  /** `.durable-timer` beside the file when absent. */
  readonly statePath?: string;
};

export type LocalOptions = LocalPlace & {
  /** How to run the worker program, with the environment of all children. */
  readonly worker: ChildCommand;
  /** The nats-server program; absent when there is none on this machine. */
  readonly serverProgram?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly onNotice: (notice: LocalNotice) => void;
};

/** A run under way. */
export interface LocalRun {
  readonly cluster: LocalCluster;
  readonly stateFolder: string;
  /** Servers that the resource names, or the embedded one. */
  servers(): readonly string[];
  /** The worker processes as they are. */
  workers(): PoolFacts["workers"];
  /** Stops workers, then the server; at once when `hurry` aborts. Idempotent. */
  stop(hurry?: AbortSignal): Promise<void>;
  /** Ends every child without waiting. */
  kill(): void;
}

/** Starts a run. Rejects with a Failure: `STATE_LOCKED`, `RESOURCE_INVALID` (the problems were told as a notice), `PROCESS_FAILED`. */
export async function startLocal(options: LocalOptions): Promise<LocalRun> {
  const paths = statePaths(stateFolderOf(options));
  createStateFolder(paths);
  const lock = takeStateLock(paths.lock, options.random);
  try {
    return await startLocked(options, paths, lock.release);
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A cluster for looking only, whether or not another process runs it; `holder` is that process. */
export function lookAtLocal(options: LocalPlace & Pick<LocalOptions, "clock" | "random" | "onNotice">): { readonly cluster: LocalCluster; readonly resource: LocalResource; readonly holder?: number } {
  const paths = statePaths(stateFolderOf(options));
  const holder = stateLockHolder(paths.lock);
  const resource = openResource(options, { paths, ports: rememberedPorts(paths.server) ?? unassignedPorts, canWrite: false });
  resource.refresh();
  const cluster = new LocalCluster({
    clusterId: knownIdentity(paths) ?? "local-new",
    resource,
    secretsFolder: secretsFolderOf(options),
    clock: options.clock,
    onNotice: options.onNotice,
    recordedWorkers: () => (holder === undefined ? undefined : recordedWorkers(paths)),
  });
  return { cluster, resource, ...(holder === undefined ? {} : { holder }) };
}

async function startLocked(options: LocalOptions, paths: StatePaths, release: () => void): Promise<LocalRun> {
  const { clock, random, onNotice } = options;
  const ledger = new ProcessLedger(paths.ledger);
  for (const { role, pid } of await ledger.stopLeftovers(clock, natsStopTimeoutMs)) onNotice({ kind: "leftover_stopped", role, pid });
  const clusterId = folderIdentity(paths, random);
  const before = rememberedPorts(paths.server);
  const ports = await embeddedPorts(paths.server, random);
  if (before !== undefined && before.client !== ports.client) onNotice({ kind: "port_moved", from: before.client, to: ports.client });
  const resource = openResource(options, { paths, ports, canWrite: true, onAccepted: () => { servers.follow(resource.spec); } });
  const servers = new ServerKeeper({ ...options, environment: options.worker.environment, paths, ledger, ports });
  resource.refresh();
  if (resource.spec === undefined) throw new Failure("invalid", "RESOURCE_INVALID", `use ${options.filePath}`);
  await servers.begin(resource.spec);

  const pool = new WorkerPool({ clock, random, onNotice, onChange: () => { recordWorkers(paths, pool.facts()); cluster.workersChanged(); } });
  const secretsFolder = secretsFolderOf(options);
  const surroundings = { command: options.worker, secretsFolder, logsFolder: paths.logs, namePrefix: clusterId, ledger, random };
  const cluster = new LocalCluster({ clusterId, resource, secretsFolder, clock, onNotice, workers: { pool, surroundings } });
  return {
    cluster,
    stateFolder: paths.root,
    servers: () => resource.spec?.nats.servers ?? [],
    workers: () => pool.facts()?.workers ?? [],
    stop: async (hurry) => {
      await pool.stop(hurry);
      await servers.stop(hurry);
      release();
    },
    kill: () => {
      pool.kill();
      servers.kill();
      release();
    },
  };
}

type KeeperOptions = Pick<LocalOptions, "serverProgram" | "clock" | "random" | "onNotice"> & {
  readonly environment: ChildCommand["environment"];
  readonly paths: StatePaths;
  readonly ledger: ProcessLedger;
  readonly ports: EmbeddedPorts;
};

/** The embedded server from the moment at which a resource first needs it until the end of the run. */
class ServerKeeper {
  readonly #options: KeeperOptions;
  #isFollowing = false;
  #starting: Promise<EmbeddedServer> | undefined;
  #server: EmbeddedServer | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Starts the server when the first spec needs it, and rejects when that is not possible. */
  async begin(spec: DurableTimerSpec): Promise<void> {
    this.#isFollowing = true;
    if (this.#isNeeded(spec)) await this.#start();
  }

  /** Starts the server when a later spec needs it; that it cannot be started is told as a notice. */
  follow(spec: DurableTimerSpec | undefined): void {
    if (!this.#isFollowing || spec === undefined || this.#starting !== undefined || !this.#isNeeded(spec)) return;
    this.#start().catch((error: unknown) => {
      this.#starting = undefined;
      this.#options.onNotice({ kind: "server_exited", problem: error instanceof Error ? error.message : String(error) });
    });
  }

  async stop(hurry?: AbortSignal): Promise<void> {
    await this.#server?.stop(hurry);
  }

  kill(): void {
    this.#server?.kill();
  }

  async #start(): Promise<void> {
    const { serverProgram, environment, paths, ledger, ports, clock, random, onNotice } = this.#options;
    if (serverProgram === undefined) {
      throw new Failure(
        "invalid", "PROCESS_FAILED",
        "start an embedded NATS server: there is no nats-server on this machine; install NATS 2.14.4 or newer, set DURABLE_TIMER_NATS_SERVER to its path, or name servers in spec.nats.servers",
      );
    }
    const logFile = join(paths.logs, "nats-server.log");
    this.#starting = EmbeddedServer.start({ program: serverProgram, folder: paths.server, logFile, environment, ledger, clock, random, onNotice }, ports);
    this.#server = await this.#starting;
  }

  #isNeeded(spec: DurableTimerSpec): boolean {
    return spec.nats.servers.includes(embeddedUrl(this.#options.ports.client));
  }
}

function openResource(
  options: LocalPlace & Pick<LocalOptions, "random" | "onNotice">,
  at: { readonly paths: StatePaths; readonly ports: EmbeddedPorts; readonly canWrite: boolean; readonly onAccepted?: () => void },
): LocalResource {
  return new LocalResource({
    filePath: options.filePath,
    stateFolder: at.paths.root,
    embeddedUrl: embeddedUrl(at.ports.client),
    random: options.random,
    canWrite: at.canWrite,
    onNotice: (notice) => {
      options.onNotice(notice);
      if (notice.kind === "file_accepted") at.onAccepted?.();
    },
  });
}

function recordWorkers(paths: StatePaths, facts: PoolFacts | undefined): void {
  writeJsonFile(paths.workers, facts ?? null);
}

function recordedWorkers(paths: StatePaths): PoolFacts | undefined {
  return (readJsonFile(paths.workers) as PoolFacts | null | undefined) ?? undefined;
}

function stateFolderOf({ filePath, statePath }: LocalPlace): string {
  return resolve(statePath ?? join(dirname(filePath), ".durable-timer"));
}

function secretsFolderOf({ filePath }: LocalPlace): string {
  return join(dirname(resolve(filePath)), "secrets");
}

/** Stands for a server that was never started: nothing listens there. */
const unassignedPorts: EmbeddedPorts = { client: 1, monitoring: 1 };
