/** How full the streams that live timers occupy are. One silent answer makes the whole unknown: admission fails closed. */
import { streamNames } from "../protocol/names.ts";
import type { CapacityProbe, StreamUsage } from "../worker/ports.ts";
import type { JetStream, StreamState, Told } from "./core/jetstream.ts";

/** Usage of three streams and the account, asked anew at each call. */
export function natsCapacityProbe(jetStream: JetStream): CapacityProbe {
  return {
    async usage() {
      const [state, snapshots, terminals, account] = await Promise.all([
        jetStream.streamState(streamNames.state),
        jetStream.streamState(streamNames.snapshots),
        jetStream.streamState(streamNames.terminals),
        jetStream.accountState(),
      ]);
      const usages = { state: streamUsage(state), snapshots: streamUsage(snapshots), terminals: streamUsage(terminals) };
      if (usages.state === undefined || usages.snapshots === undefined || usages.terminals === undefined || account.kind === "failed") return undefined;
      const { storageBytes, storageBytesMax } = account.value;
      return {
        state: usages.state,
        snapshots: usages.snapshots,
        terminals: usages.terminals,
        account: { bytes: storageBytes, ...(storageBytesMax === undefined ? {} : { bytesMax: storageBytesMax }), replicas: replicasOf(state) },
      };
    },
  };
}

/** All streams of a topology have as many. */
function replicasOf(told: Told<StreamState>): number {
  const replicas = told.kind === "told" ? told.value.config["num_replicas"] : undefined;
  return typeof replicas === "number" && replicas > 0 ? replicas : 1;
}

function streamUsage(told: Told<StreamState>): StreamUsage | undefined {
  if (told.kind === "failed") return undefined;
  const { messages, bytes, config } = told.value;
  const max = config["max_bytes"];
  return { messages, bytes, ...(typeof max === "number" && max > 0 ? { bytesMax: max } : {}) };
}
