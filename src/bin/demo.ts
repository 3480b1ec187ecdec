// The demo: an operator, workers and a NATS server on this machine, timers of every kind, a worker killed in the middle, and a table
// of what came of it, counted in NATS. Exits with 0 only when the table is right.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeFailure, Failure } from "../base/failure.ts";
import { GateWatch } from "./demo-gates.ts";
import type { EndedWorker } from "./demo-play.ts";
import { playAndCount } from "./demo-story.ts";
import { startLocalOperator, type LocalOperator } from "./local-operator.ts";

const resourceText = `apiVersion: durabletimer.dev/v1alpha1
kind: DurableTimer
metadata: {name: demo}
spec:
  workers: {replicas: 2, minReadySeconds: 0, terminationGracePeriodSeconds: 15}
`;
const readyMsMax = 30_000;

await main();

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "durable-timer-demo-"));
  const beganAtMs = Date.now();
  let isRight = false;
  try {
    isRight = await runDemo(folder);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    say(describeFailure(error));
  }
  say(`${isRight ? "The table is right" : "The table is WRONG"}; took ${((Date.now() - beganAtMs) / 1_000).toFixed(0)} s`);
  if (isRight) rmSync(folder, { recursive: true, force: true });
  else say(`Logs and state stay in ${folder}`);
  process.exitCode = isRight ? 0 : 1;
}

async function runDemo(folder: string): Promise<boolean> {
  const filePath = join(folder, "durabletimer.yaml");
  writeFileSync(filePath, resourceText);
  say("A DurableTimer on this machine: embedded NATS server, operator, two workers.\n");
  const gates = new GateWatch(say);
  const operator = await startLocalOperator({ filePath }, (notice) => { gates.see(notice); });
  const stop = async (): Promise<void> => { await operator.stop(); };
  const interrupted = (): void => {
    operator.run.kill();
    process.exit(130);
  };
  process.once("SIGINT", interrupted);
  process.once("SIGTERM", interrupted);
  try {
    await gates.ready(readyMsMax);
    return await playAndCount({ servers: operator.run.servers(), killWorker: () => killWorker(operator), say });
  } finally {
    await stop();
  }
}

function killWorker({ run }: LocalOperator): Promise<EndedWorker> {
  const victim = run.workers().find(({ pid, isReady }) => pid !== undefined && isReady);
  if (victim?.pid === undefined) return Promise.resolve({ how: "SIGKILL", which: "no worker is there to be killed" });
  process.kill(victim.pid, "SIGKILL");
  return Promise.resolve({ how: "SIGKILL", which: `worker ${victim.slot} (pid ${String(victim.pid)})` });
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
