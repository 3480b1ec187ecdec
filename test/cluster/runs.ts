/**
 * Remembers what a running bed consists of, so that it can be ended by another process, or after a
 * crash of the one that started it.
 *
 * 1. A process is written to state.json right after it is started.
 * 2. A run with an owner ends with its owner: the next bed that starts ends it.
 * 3. A run without an owner stays until it is ended by name (`down.ts`).
 */
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runsDir } from "./paths.ts";
import type { ProcessRecord } from "./processes.ts";
import { isRunning, recordOf, stopProcess } from "./processes.ts";

/** `caller`: ends when this process ends. `state`: stays until it is ended by name. */
export type KeptBy = "caller" | "state";

export type RunState = {
  readonly owner: ProcessRecord | null;
  /** In the order in which they were started. */
  readonly processes: readonly ProcessRecord[];
  /** What whoever finds the run may want to know, such as the kubeconfig's path. */
  readonly facts: Readonly<Record<string, string>>;
};

/** One running bed: a folder below run/, and the processes recorded in it. */
export class Run {
  readonly name: string;
  readonly dir: string;
  #state: RunState;

  constructor(name: string, state: RunState) {
    this.name = name;
    this.dir = join(runsDir, name);
    this.#state = state;
  }

  get state(): RunState {
    return this.#state;
  }

  /** Records a process that was just started. */
  async addProcess(record: ProcessRecord): Promise<void> {
    await this.#write({ ...this.#state, processes: [...this.#state.processes, record] });
  }

  /** Stops one process of this run and forgets it. */
  async stopProcess(record: ProcessRecord, graceMs: number): Promise<void> {
    await stopProcess(record, graceMs);
    await this.#write({ ...this.#state, processes: this.#state.processes.filter((other) => other.pid !== record.pid) });
  }

  async addFacts(facts: RunState["facts"]): Promise<void> {
    await this.#write({ ...this.#state, facts: { ...this.#state.facts, ...facts } });
  }

  /** Stops every process, latest first. Idempotent. */
  async stopProcesses(): Promise<void> {
    for (const record of this.#state.processes.toReversed()) await stopProcess(record, STOP_GRACE_MS);
  }

  /** Removes the folder, after which the run is forgotten. Idempotent. */
  async remove(): Promise<void> {
    // A folder that is being emptied under its name could be taken, half empty, for a free name: a new run would then lose its files.
    const oldDir = join(runsDir, `${HIDDEN_PREFIX}${this.name}-${randomUUID()}`);
    try {
      await rename(this.dir, oldDir);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    await rm(oldDir, { recursive: true, force: true });
  }

  /** Stops everything and removes the folder. Idempotent. */
  async end(): Promise<void> {
    await this.stopProcesses();
    await this.remove();
  }

  async #write(state: RunState): Promise<void> {
    this.#state = state;
    await writeState(this.dir, state);
  }
}

/** Makes a new run; fails when one of that name exists, also when two callers try at once. */
export async function createRun(name: string, keptBy: KeptBy): Promise<Run> {
  const state: RunState = { owner: keptBy === "caller" ? recordOf("owner", process.pid) : null, processes: [], facts: {} };
  await mkdir(runsDir, { recursive: true });
  const newDir = await mkdtemp(join(runsDir, HIDDEN_PREFIX));
  await writeState(newDir, state);
  try {
    // Renaming onto a folder that holds something is refused: the name is claimed in one step.
    await rename(newDir, join(runsDir, name));
  } catch (error) {
    await rm(newDir, { recursive: true });
    throw new Error(`a run named ${name} exists; end it with: node test/cluster/down.ts ${name}`, { cause: error });
  }
  return new Run(name, state);
}

/** The run of that name, or undefined when there is none. */
export async function findRun(name: string): Promise<Run | undefined> {
  try {
    const text = await readFile(join(runsDir, name, STATE_FILE), "utf8");
    return new Run(name, JSON.parse(text) as RunState);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Every run there is. */
export async function listRuns(): Promise<readonly Run[]> {
  await mkdir(runsDir, { recursive: true });
  const names = (await readdir(runsDir)).filter((name) => !name.startsWith(HIDDEN_PREFIX));
  const runs = await Promise.all(names.map(findRun));
  return runs.filter((run) => run !== undefined);
}

/** Whether the run should have ended, because the process that it belonged to is gone. */
export function isAbandoned(run: Run): boolean {
  return run.state.owner !== null && !isRunning(run.state.owner);
}

async function writeState(dir: string, state: RunState): Promise<void> {
  const path = join(dir, STATE_FILE);
  await writeFile(`${path}.partial`, `${JSON.stringify(state, null, 2)}\n`);
  await rename(`${path}.partial`, path);
}

const HIDDEN_PREFIX = ".hidden-";
const STATE_FILE = "state.json";
const STOP_GRACE_MS = 1_000;
