// This product, through its SDK: a start is acknowledged in COMMANDS, a wake is the published resume.

import { connectTimers } from "../../src/client/connect.ts";
import type { OpenSystem } from "../harness.ts";

/** Starts timers and consumes their resumes over one connection, as a flow's owner does. */
export function durableTimer(servers: readonly string[]): OpenSystem {
  return async (onWake) => {
    const client = await connectTimers({ servers });
    const consuming = (async () => {
      for await (const delivery of client.resumes({ lookahead: 1_000 })) {
        onWake(Number(delivery.resume.lineage.execution));
        delivery.ack();
      }
    })();
    return {
      arm: async ({ id, dueAtMs, body }) => {
        await client.start({
          flow: { id: "bench", version: "1" }, execution: String(id), node: "wait", edges: { start: "start", elapsed: "elapsed" },
          wait: { dueAt: new Date(dueAtMs) }, body: Buffer.from(body),
        });
      },
      close: async () => {
        await client.close();
        await consuming;
      },
    };
  };
}
