// Local mode put together: the operator's controller over a local cluster and a NATS broker.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ChildCommand } from "../local/child-process.ts";
import { startLocal, type LocalNotice, type LocalPlace, type LocalRun } from "../local/local-run.ts";
import { LogFile } from "../local/log-file.ts";
import { natsBrokerPort } from "../nats/operator-broker.ts";
import { Controller } from "../operator/controller.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { openLog } from "../telemetry/log.ts";
import { openRegistry, operatorMetrics } from "../telemetry/metrics.ts";

/** An operator that runs one resource from a file. */
export type LocalOperator = {
  readonly run: LocalRun;
  /** Stops the operator, the workers and the server, in this order. Rejects for a bug. */
  stop(): Promise<void>;
  /** Rejects when the operator ends by itself, which is a bug; resolves when it was stopped. */
  readonly ended: Promise<void>;
};

/** Starts local mode. Rejects with a Failure when the file, the state folder or the server cannot be used. */
export async function startLocalOperator(place: LocalPlace, onNotice: (notice: LocalNotice) => void): Promise<LocalOperator> {
  const serverProgram = findServerProgram(process.env);
  const tools = { clock: systemClock, random: systemRandom };
  const run = await startLocal({ ...place, ...tools, onNotice, worker: workerCommand(), ...(serverProgram === undefined ? {} : { serverProgram }) });
  const log = openLog({ level: "info", fields: { component: "operator" }, destination: new LogFile(join(run.stateFolder, "logs", "operator.log")) });
  const controller = new Controller({ cluster: run.cluster, broker: natsBrokerPort(tools), metrics: operatorMetrics(openRegistry()), log, ...tools });
  const stopping = new AbortController();
  const ended = controller.run(stopping.signal);
  return {
    run,
    ended,
    stop: async () => {
      stopping.abort();
      await ended;
      await run.stop();
    },
  };
}

/** The worker program beside this one: source under Node's type stripping, or its bundle. */
function workerCommand(): ChildCommand {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const environment = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  return { command: process.execPath, args: [fileURLToPath(new URL(`./worker.${extension}`, import.meta.url))], environment };
}

/** The nats-server that the environment names, or the one on the PATH. */
function findServerProgram(environment: NodeJS.ProcessEnv): string | undefined {
  const named = environment["DURABLE_TIMER_NATS_SERVER"];
  if (named !== undefined && named !== "") return named;
  const folders = (environment["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, "nats-server")).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
