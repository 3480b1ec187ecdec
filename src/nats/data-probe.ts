/**
 * Whether the data streams are there, and which lives of them these are. What does not answer makes the whole unknown;
 * only a stream that the broker denies to have is missing.
 */
import { present } from "../base/assert.ts";
import { leaseKeys, stateRecordFilter, stateSubject, streamNames } from "../protocol/names.ts";
import type { ServerConfig } from "../topology/layout.ts";
import type { DataProbe, DataStream, StreamLife } from "../worker/ports.ts";
import type { JetStream, LastMessage, StreamState, Told } from "./core/jetstream.ts";
import { isMarker } from "./records.ts";

/** What the topology room knows of a stream's stamp. */
export type StampReader = (config: ServerConfig) => { readonly ownerId: string; readonly incarnation: string } | undefined;

/** A probe that asks every leader anew at each look. */
export function natsDataProbe(jetStream: JetStream, readStamp: StampReader): DataProbe {
  const last = async (subject: string): Promise<LastMessage> => {
    const [found] = await jetStream.readLast({ stream: streamNames.state, subjects: [subject], from: "leader" });
    return present(found, "one message per subject");
  };
  /** Undefined when it cannot be told. The record is looked for first: its snapshot was stored before it. */
  const lacksSnapshots = async (): Promise<boolean | undefined> => {
    const record = await last(stateRecordFilter);
    if (record.kind === "failed") return undefined;
    if (record.kind === "absent" || isMarker(record.message)) return false;
    const snapshots = await jetStream.streamState(streamNames.snapshots);
    return snapshots.kind === "failed" ? undefined : snapshots.value.messages === 0;
  };
  return {
    async look() {
      const [ownerKey, ...told] = await Promise.all([last(stateSubject(leaseKeys.owner)), ...roles.map((role) => jetStream.streamState(streamNames[role]))]);
      const unknown = told.some((one) => one.kind === "failed" && one.failure.code !== "STREAM_MISSING");
      if (unknown) return undefined;
      const states = new Map(roles.map((role, index) => [role, present(told[index], "one answer per stream")]));
      const streams = Object.fromEntries([...states].map(([role, one]) => [role, lifeOf(one, readStamp)])) as Readonly<Record<DataStream, StreamLife | undefined>>;
      // What lies in a stream that is not there is nobody's question.
      if (streams.state === undefined) return { streams, hasOwnerKey: false, lacksSnapshots: false };
      if (ownerKey.kind === "failed") return undefined;
      const lacks = messagesOf(states.get("snapshots")) === 0 ? await lacksSnapshots() : false;
      if (lacks === undefined) return undefined;
      return { streams, hasOwnerKey: ownerKey.kind === "found" && !isMarker(ownerKey.message), lacksSnapshots: lacks };
    },
  };
}

function lifeOf(told: Told<StreamState>, readStamp: StampReader): StreamLife | undefined {
  if (told.kind === "failed") return undefined;
  const { config, createdAt, lastSequence } = told.value;
  const stamp = readStamp(config);
  return { ownerId: stamp?.ownerId ?? "", incarnation: stamp?.incarnation ?? "", createdAt, lastSequence };
}

function messagesOf(told: Told<StreamState> | undefined): number | undefined {
  return told?.kind === "told" ? told.value.messages : undefined;
}

const roles: readonly DataStream[] = ["state", "snapshots", "terminals", "resumes", "feedback", "commands"];
