// BullMQ on Redis: a delayed job per timer.

import type { OpenSystem } from "../harness.ts";
import { loadPeer } from "../peers.ts";

type Closable = { close(): Promise<void> };
type BullMq = {
  readonly Queue: new (name: string, options: object) => Closable & { add(name: string, data: object, options: object): Promise<unknown> };
  readonly Worker: new (name: string, process: (job: { readonly data: { readonly id: number } }) => Promise<void>, options: object) => Closable & { waitUntilReady(): Promise<unknown> };
};

/** One queue, one worker of a hundred concurrent jobs. */
export function bullMq(port: number): OpenSystem {
  return async (onWake) => {
    const { Queue, Worker } = await loadPeer<BullMq>("bullmq");
    const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
    const name = `bench${String(Date.now())}`;
    const queue = new Queue(name, { connection });
    const worker = new Worker(name, (job) => Promise.resolve(onWake(job.data.id)), { connection, concurrency: 100, removeOnComplete: { count: 0 } });
    await worker.waitUntilReady();
    return {
      arm: async ({ id, dueAtMs, body }) => { await queue.add("wait", { id, body }, { jobId: `j${String(id)}`, delay: Math.max(0, dueAtMs - Date.now()) }); },
      close: async () => {
        await worker.close();
        await queue.close();
      },
    };
  };
}
