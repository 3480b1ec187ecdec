// The demo: an operator, workers and a NATS server on this machine, timers of every kind, a worker killed in the middle, and a table
// of what came of it, counted in NATS. Exits with 0 only when the table is right.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeFailure, Failure } from "../base/failure.ts";
import { connectTimeoutMs } from "../base/limits.ts";
import { connectTimers } from "../client/index.ts";
import { openBroker } from "../nats/core/connection.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { GateWatch } from "./demo-gates.ts";
import { play, type SeenResume } from "./demo-play.ts";
import { closingTable, countInNats, type NatsCounts } from "./demo-table.ts";
import { demoTimers, type DemoTimer } from "./demo-timers.ts";
import { startLocalOperator, type LocalOperator } from "./local-operator.ts";

const resourceText = `apiVersion: durabletimer.dev/v1alpha1
kind: DurableTimer
metadata: {name: demo}
spec:
  workers: {replicas: 2, minReadySeconds: 0, terminationGracePeriodSeconds: 15}
`;
/** The wait for the last resume ends here, so that the whole stays below a minute. */
const playMsMax = 50_000;
const readyMsMax = 30_000;
const archiveMsMax = 5_000;

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
    return await playAndCount(operator);
  } finally {
    await stop();
  }
}

async function playAndCount(operator: LocalOperator): Promise<boolean> {
  const servers = operator.run.servers();
  const plan = demoTimers(`demo-${systemRandom.token(8)}`);
  const timers = await connectTimers({ servers, name: "durable-timer-demo" });
  say("");
  let seen: readonly SeenResume[];
  try {
    seen = await play({ timers, plan, say, killWorker: () => killWorker(operator), deadline: AbortSignal.timeout(playMsMax) });
  } finally {
    await timers.close();
  }
  const table = closingTable(plan, await settledCounts(servers, plan), seen);
  say(["", ...table.lines, ""].join("\n"));
  return table.isRight;
}

/** The archive follows the answer to the last feedback by a moment. */
async function settledCounts(servers: readonly string[], plan: readonly DemoTimer[]): Promise<NatsCounts> {
  const broker = openBroker({ servers, name: "durable-timer-demo-count" }, { clock: systemClock, random: systemRandom });
  try {
    await broker.connected(connectTimeoutMs);
    const untilMs = Date.now() + archiveMsMax;
    for (;;) {
      const counts = await countInNats(broker.jetStream);
      if ((counts.archived.length >= plan.length && counts.live === 0) || Date.now() >= untilMs) return counts;
      await new Promise((resolve) => { setTimeout(resolve, 100); });
    }
  } finally {
    await broker.close();
  }
}

async function killWorker({ run }: LocalOperator): Promise<string> {
  const victim = run.workers().find(({ pid, isReady }) => pid !== undefined && isReady);
  if (victim?.pid === undefined) return "no worker is there to be killed";
  process.kill(victim.pid, "SIGKILL");
  return `worker ${victim.slot} (pid ${String(victim.pid)})`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
