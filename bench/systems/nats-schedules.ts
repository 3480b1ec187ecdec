// Native NATS schedules and nothing else: no record, no snapshot, no fence, no archive. The floor on which this product stands.

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import type { OpenSystem } from "../harness.ts";

/** One subject per schedule, one wake subject, one pull consumer; persistence as the server's default. */
export function natsSchedules(servers: readonly string[], replicas: number): OpenSystem {
  return async (onWake) => {
    const connection = await connect({ servers: [...servers] });
    const manager = await jetstreamManager(connection);
    const stream = `BENCH${String(Date.now())}`;
    await manager.streams.add({
      name: stream, subjects: [`${stream}.s.>`, `${stream}.w`], num_replicas: replicas, allow_direct: true, allow_msg_ttl: true,
      // Fields that the package's types do not know yet.
      ...{ allow_msg_schedules: true },
    });
    await manager.consumers.add(stream, { durable_name: "w", filter_subject: `${stream}.w`, ack_policy: "explicit", max_ack_pending: 5_000 });
    const js = jetstream(connection);
    const messages = await (await js.consumers.get(stream, "w")).consume({ max_messages: 1_000 });
    const consuming = (async () => {
      for await (const message of messages) {
        onWake(Number(message.headers?.get("Timer-Id")));
        message.ack();
      }
    })();
    return {
      arm: async ({ id, dueAtMs, body }) => {
        const head = headers();
        head.set("Nats-Schedule", `@at ${new Date(dueAtMs).toISOString()}`);
        head.set("Nats-Schedule-Target", `${stream}.w`);
        head.set("Timer-Id", String(id));
        await js.publish(`${stream}.s.${String(id)}`, body, { headers: head });
      },
      close: async () => {
        messages.stop();
        await consuming;
        await connection.close();
      },
    };
  };
}
