/** From a resource to its worker processes: their configuration, its hash, and how they are started. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Random } from "../base/random.ts";
import type { DurationMs } from "../base/units.ts";
import type { DurableTimerSpec } from "../resource/durable-timer.ts";
import { workerConfigVariable, workerNameVariable } from "../resource/names.ts";
import { workerConfigOf, workerConfigText, type WorkerConfig } from "../resource/worker-config.ts";
import { startChild, type ChildCommand } from "./child-process.ts";
import { answersOk, freePort } from "./loopback.ts";
import type { ProcessLedger } from "./process-ledger.ts";
import { workerSecretFolders } from "./secrets-folder.ts";
import type { PoolPlan } from "./worker-pool.ts";
import type { WorkerLauncher } from "./worker-slot.ts";

/** What every worker of a state folder shares. */
export type WorkerSurroundings = {
  /** How to run the worker program. */
  readonly command: ChildCommand;
  readonly secretsFolder: string;
  readonly logsFolder: string;
  /** First part of a worker's name, which no other process may have. */
  readonly namePrefix: string;
  readonly ledger: ProcessLedger;
  readonly random: Random;
};

/** The workers that a spec wants. */
export function poolPlan(spec: DurableTimerSpec, at: WorkerSurroundings): PoolPlan {
  const { workers } = spec;
  return {
    replicas: workers.replicas,
    hash: workersHash(spec, at.secretsFolder),
    launcher: processLauncher(workerConfigOf(spec, workerSecretFolders(spec, at.secretsFolder)), at),
    minReadyMs: seconds(workers.minReadySeconds),
    graceMs: seconds(workers.terminationGracePeriodSeconds),
    progressDeadlineMs: seconds(workers.progressDeadlineSeconds),
  };
}

/** Hash of all that a worker is started with, but for its port. */
export function workersHash(spec: DurableTimerSpec, secretsFolder: string): string {
  const config = workerConfigOf(spec, workerSecretFolders(spec, secretsFolder));
  return createHash("sha256").update(workerConfigText(config)).digest("hex").slice(0, 16);
}

/** Starts worker processes with one configuration, each with a health port of its own. */
function processLauncher(config: WorkerConfig, at: WorkerSurroundings): WorkerLauncher {
  return {
    launch: async (slot) => {
      const healthPort = await freePort(at.random);
      const environment = {
        ...at.command.environment,
        [workerConfigVariable]: workerConfigText({ ...config, healthPort }),
        // Probes come from this machine alone.
        DURABLE_TIMER_HEALTH_HOST: "127.0.0.1",
        [workerNameVariable]: `${at.namePrefix}-${slot}-${at.random.token(6)}`,
      };
      const child = await startChild({ ...at.command, environment }, join(at.logsFolder, `worker-${slot}.log`));
      at.ledger.add(child.pid, `worker ${slot}`);
      const exited = child.exited.then((exit) => {
        at.ledger.remove(child.pid);
        return exit;
      });
      return { ...child, exited, isReady: () => answersOk(healthPort, "/readyz") };
    },
  };
}

function seconds(value: number): DurationMs {
  return (value * 1_000) as DurationMs;
}
