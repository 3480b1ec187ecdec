// graphile-worker on PostgreSQL: a job with `runAt` per timer.

import type { OpenSystem } from "../harness.ts";
import { loadPeer } from "../peers.ts";

type Runner = { stop(): Promise<void> };
type Graphile = {
  readonly run: (options: object) => Promise<Runner>;
  readonly makeWorkerUtils: (options: object) => Promise<{ migrate(): Promise<void>; release(): Promise<void>; addJob(name: string, data: object, options: object): Promise<unknown> }>;
  readonly Logger: new (factory: () => () => void) => object;
};

/** Fifty concurrent jobs, polled for every 100 ms. */
export function graphileWorker(connectionString: string): OpenSystem {
  return async (onWake) => {
    const { run, makeWorkerUtils, Logger } = await loadPeer<Graphile>("graphile-worker");
    const logger = new Logger(() => () => undefined);
    const utils = await makeWorkerUtils({ connectionString, logger, maxPoolSize: 32 });
    await utils.migrate();
    const preset = { worker: { connectionString, concurrentJobs: 50, pollInterval: 100, maxPoolSize: 32, logger } };
    const taskList = { wait: (data: { readonly id: number }) => Promise.resolve(onWake(data.id)) };
    const runner = await run({ preset, logger, noHandleSignals: true, taskList });
    return {
      arm: async ({ id, dueAtMs, body }) => { await utils.addJob("wait", { id, body }, { runAt: new Date(dueAtMs), jobKey: `k${String(id)}` }); },
      close: async () => {
        await runner.stop().catch(() => undefined);
        await utils.release();
      },
    };
  };
}
