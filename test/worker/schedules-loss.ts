/** SCHEDULES as it is after the operator has made it anew: gone with all it held, and there again under another incarnation. */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import { systemRandom } from "../../src/system/random.ts";
import { stampKeys } from "../../src/topology/stamp.ts";
import { told, type World } from "./world.ts";

/** Deletes the stream and its consumer and makes both again, empty. */
export async function recreateSchedules({ broker, servers }: Pick<World, "broker" | "servers">): Promise<void> {
  const { config } = told(await broker.jetStream.streamState(streamNames.schedules));
  const consumer = told(await broker.jetStream.consumerState(streamNames.schedules, consumerNames.wake));
  const connection = await connect({ servers: [...servers.urls] });
  await (await jetstreamManager(connection)).streams.delete(streamNames.schedules);
  await connection.close();
  const metadata = { ...withoutServerKeys(config["metadata"]), [stampKeys.incarnation]: systemRandom.token(8) };
  told(await broker.admin.createStream({ ...config, metadata }));
  told(await broker.admin.createConsumer(streamNames.schedules, { ...consumer.config, metadata: withoutServerKeys(consumer.config["metadata"]) }));
}

/** Metadata as it was given: the server's own keys would be refused. */
export function withoutServerKeys(metadata: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata as Record<string, string>).filter(([key]) => !key.startsWith("_nats.")));
}
