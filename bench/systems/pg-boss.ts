// pg-boss on PostgreSQL: a job with `startAfter` per timer.

import type { OpenSystem } from "../harness.ts";
import { loadPeer } from "../peers.ts";

type Boss = {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  createQueue(name: string): Promise<void>;
  work(name: string, options: object, handler: (jobs: readonly { readonly data: { readonly id: number } }[]) => Promise<void>): Promise<unknown>;
  send(name: string, data: object, options: object): Promise<unknown>;
};

/** One worker that polls twice a second for up to 500 jobs. */
export function pgBoss(connectionString: string): OpenSystem {
  return async (onWake) => {
    const { default: PgBoss } = await loadPeer<{ readonly default: new (options: object) => Boss }>("pg-boss");
    const boss = new PgBoss({ connectionString, max: 32, schema: `pgboss_${String(Date.now())}` });
    boss.on("error", (error) => { console.error("pg-boss:", error.message); });
    await boss.start();
    await boss.createQueue("wait");
    await boss.work("wait", { batchSize: 500, pollingIntervalSeconds: 0.5 }, (jobs) => Promise.resolve(jobs.forEach(({ data }) => { onWake(data.id); })));
    return {
      arm: async ({ id, dueAtMs, body }) => { await boss.send("wait", { id, body }, { startAfter: new Date(dueAtMs), retentionDays: 1 }); },
      close: () => boss.stop({ graceful: false }).catch(() => undefined),
    };
  };
}
