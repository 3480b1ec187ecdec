// The demo's story on a system that is ready, wherever it runs: plays its timers, then counts in NATS what came of them.

import { connectTimeoutMs } from "../base/limits.ts";
import { connectTimers } from "../client/index.ts";
import { openBroker } from "../nats/core/connection.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { play, type PlayOptions, type SeenResume } from "./demo-play.ts";
import { closingTable, countInNats, type NatsCounts } from "./demo-table.ts";
import { demoTimers, type DemoTimer } from "./demo-timers.ts";

export type StoryOptions = Pick<PlayOptions, "killWorker" | "say"> & { readonly servers: readonly string[] };

/** Prints the timeline and the closing table; true when the table is right. */
export async function playAndCount({ servers, killWorker, say }: StoryOptions): Promise<boolean> {
  const plan = demoTimers(`demo-${systemRandom.token(8)}`);
  const timers = await connectTimers({ servers, name: "durable-timer-demo" });
  say("");
  let seen: readonly SeenResume[];
  try {
    seen = await play({ timers, plan, say, killWorker, deadline: AbortSignal.timeout(playMsMax) });
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

/** The wait for the last resume ends here, so that the whole stays below a minute. */
const playMsMax = 50_000;
const archiveMsMax = 5_000;
