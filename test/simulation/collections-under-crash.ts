/** Collection as the crash tests walk through it: of ended timers, of orphans, and starts that come before, during and after. */
import type { StartRequest } from "../../src/client/start.ts";
import { prepareStart } from "../../src/client/start.ts";
import { commandSubjects, headerNames, stateRecordFilter, streamNames } from "../../src/protocol/names.ts";
import { decodeGrave } from "../../src/protocol/tombstone.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import type { RetentionSettings } from "../../src/worker/settings.ts";
import type { Transition } from "./crash-points.ts";
import type { Script } from "./script.ts";
import type { SimulatedWorld } from "./world.ts";

const second = 1_000;
const endAtMs = 90 * second;
/** The marker of the record stays for five minutes, and keeps every start away as long. */
const markerGoneMs = endAtMs + 330 * second;

const request: StartRequest = {
  flow: { id: "orders", version: "1" }, execution: "ex-1", node: "wait", edges: { start: "e1", elapsed: "e2", retry: "e3" },
  wait: { delayMs: 2 * second }, maxRetries: 2, retryWait: { delayMs: 900 * second }, body: Buffer.from("event"),
};

const ended: Script = { request, startAtMs: second, steps: [{ atMs: endAtMs, verb: "complete", generation: 0 }] };
const retention: RetentionSettings = {
  archiveAgeMs: 60 * second as never, dedupeMs: 3_600 * second as never, orphanAgeMs: 100_000 * second as never, intervalMs: 10 * second as never, snapshotWalkIntervalMs: 20 * second as never,
};
const completed = { phase: "terminal", generation: 0, fence: 3 } as const;

export const collections: readonly Transition[] = [
  { name: "collection", script: ended, fromMs: endAtMs + 30 * second, ending: completed, retention, isOver: isCollected },
  {
    name: "start while its timer is collected", script: ended, fromMs: markerGoneMs, ending: completed, isOver: isCollected,
    retention: { ...retention, archiveAgeMs: markerGoneMs - endAtMs as never },
    accidents: [{ atMs: endAtMs, happen: (world) => onceStored(world, streamNames.snapshots, () => send(world, request)) }],
  },
  {
    name: "start after its timer was collected", script: ended, fromMs: markerGoneMs, ending: completed, retention, isOver: isCollected,
    accidents: [{ atMs: markerGoneMs, happen: (world) => send(world, request) }],
  },
  {
    name: "another start after the timer was collected", script: ended, fromMs: markerGoneMs, ending: completed, retention, isOver: isCollected,
    accidents: [{ atMs: markerGoneMs, happen: (world) => send(world, { ...request, body: Buffer.from("another event") }) }],
  },
  {
    // The next collector comes later than a tombstone lives: it must not have expired beside the archive.
    name: "start after the tombstone has expired", script: ended, fromMs: endAtMs + 30 * second, ending: { phase: "elapsed", generation: 0, fence: 2 },
    retention: { ...retention, dedupeMs: 20 * second as never },
    accidents: [{ atMs: markerGoneMs, happen: (world) => send(world, request) }],
  },
  {
    name: "collection of an orphan, whose start comes after all", script: { request, startAtMs: second, steps: [] }, fromMs: 3 * second,
    ending: { phase: "elapsed", generation: 0, fence: 2 }, retention: { ...retention, orphanAgeMs: 60 * second as never },
    // The worker dies between snapshot and record, and the command is lost; much later somebody sends it again.
    accidents: [
      { atMs: 900, happen: (world) => onceStored(world, streamNames.snapshots, () => loseCommand(world)) },
      { atMs: 350 * second, happen: (world) => send(world, request) },
    ],
  },
];

/** Nothing is left of the timer but its tombstone, which will go. */
function isCollected(world: SimulatedWorld): boolean {
  const snapshots = world.messages("snapshots");
  const graves = snapshots.map(({ headers }) => decodeGrave(headers.get(headerNames.tombstone) ?? ""));
  const records = [...world.messages("state", stateRecordFilter), ...world.messages("terminals").filter(({ subject }) => !subject.includes("~rejected"))];
  return graves.length === 1 && graves[0]?.tombstone !== undefined && graves[0].expiresInMs !== undefined && records.every(({ body }) => body.length === 0);
}

function send(world: SimulatedWorld, what: StartRequest): void {
  const { message } = prepareStart(what, { brokerPayloadBytesMax: undefined }, systemSha256);
  world.broker.streamOf(commandSubjects.start)?.publish({ subject: commandSubjects.start, headers: [[headerNames.context, message.contextHeader]], body: message.body });
}

function onceStored(world: SimulatedWorld, stream: string, act: () => void): void {
  const stop = world.broker.watch((change) => {
    if (change.kind !== "stored" || change.stream !== stream) return;
    stop();
    world.timeline.after(0, act);
  });
}

function loseCommand(world: SimulatedWorld): void {
  for (const worker of world.workers) worker.kill();
  const commands = world.broker.streams.get(streamNames.commands);
  for (const kept of commands?.store.under(">") ?? []) {
    commands?.store.remove(kept, world.timeline.nowMs());
    for (const consumer of commands?.consumers.values() ?? []) consumer.forget(kept.sequence);
  }
}
