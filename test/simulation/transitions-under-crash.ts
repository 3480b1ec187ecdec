/**
 * The transitions of a timer's life as the crash tests walk through them. A transition more is one entry in this list:
 * every point of it, and every pair, follows by itself.
 */
import type { StartRequest } from "../../src/client/start.ts";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import { collections } from "./collections-under-crash.ts";
import type { Transition } from "./crash-points.ts";
import type { Script, ScriptStep } from "./script.ts";
import type { SimulatedWorld } from "./world.ts";

const second = 1_000;
/** Long enough for a message in a dead worker's hand to come again. */
const apart = 60 * second;

function script(over: Partial<StartRequest>, ...steps: readonly ScriptStep[]): Script {
  return {
    request: {
      flow: { id: "orders", version: "1" }, execution: "ex-1", node: "wait", edges: { start: "e1", elapsed: "e2", retry: "e3" },
      wait: { delayMs: 2 * second }, maxRetries: 2, retryWait: { delayMs: 900 * second }, body: Buffer.from("event"), ...over,
    },
    startAtMs: second, steps,
  };
}

/** In place of the shortest one that a resource may ask for: virtual minutes are not free. */
const unansweredMs = 40 * second;

const waitingLong = { wait: { delayMs: 900 * second } };

/** SCHEDULES is emptied as if it had been lost, and the broker is another process afterwards. */
function loseSchedules(world: SimulatedWorld): void {
  world.broker.crash({ tail: 0 });
  const schedules = world.broker.streams.get(streamNames.schedules);
  for (const kept of schedules?.store.under(">") ?? []) schedules?.store.remove(kept, world.timeline.nowMs());
  world.timeline.after(500, () => world.broker.restart());
}

function pauseWakes(world: SimulatedWorld, forMs: number): void {
  world.broker.streams.get(streamNames.schedules)?.consumers.get(consumerNames.wake)?.pauseUntil(world.broker.clockMs() + forMs);
}

function limitTerminals(bytes: number) {
  return (world: SimulatedWorld): void => {
    const terminals = world.broker.streams.get(streamNames.terminals);
    if (terminals !== undefined) terminals.config = { ...terminals.config, max_bytes: bytes };
  };
}

const retry: ScriptStep = { atMs: apart, verb: "retry", generation: 0 };

export const transitions: readonly Transition[] = [
  { name: "start", script: script(waitingLong), fromMs: second, ending: { phase: "waiting", generation: 0, fence: 1 } },
  { name: "wake", script: script({}), fromMs: 2 * second, ending: { phase: "elapsed", generation: 0, fence: 2 } },
  { name: "retry", script: script({}, retry), fromMs: apart, ending: { phase: "waiting", generation: 1, fence: 3 } },
  { name: "complete", script: script({}, { ...retry, verb: "complete" }), fromMs: apart, ending: { phase: "terminal", generation: 0, fence: 3 } },
  { name: "fail", script: script({}, { ...retry, verb: "fail" }), fromMs: apart, ending: { phase: "terminal", generation: 0, fence: 3 } },
  { name: "fail while waiting", script: script(waitingLong, { ...retry, verb: "fail", isWaiting: true }), fromMs: apart, ending: { phase: "terminal", generation: 0, fence: 2 } },
  { name: "retry beyond the limit", script: script({ maxRetries: 0 }, retry), fromMs: apart, ending: { phase: "terminal", generation: 0, fence: 3 } },
  {
    name: "sweep that arms anew", script: script({ wait: { delayMs: 150 * second } }), fromMs: apart, ending: { phase: "elapsed", generation: 0, fence: 2 },
    accidents: [{ atMs: apart, happen: loseSchedules }],
  },
  {
    name: "sweep that resumes what a lost wake owed", script: script({}), fromMs: 3.2 * second, ending: { phase: "elapsed", generation: 0, fence: 2 },
    // The worker dies between the record and its resume, and the wake is lost with the broker.
    accidents: [{ atMs: 2_990, happen: dieBeforeResume }],
  },
  {
    name: "wake that nobody could take for a while", script: script({}), fromMs: 131 * second, ending: { phase: "elapsed", generation: 0, fence: 2 },
    accidents: [{ atMs: 1_200, happen: (world) => pauseWakes(world, 130 * second) }],
  },
  {
    name: "time-out that ends", script: script({}), fromMs: unansweredMs, ending: { phase: "terminal", generation: 0, fence: 3 },
    feedback: { timeoutMs: unansweredMs as never, onTimeout: "fail" },
  },
  {
    name: "time-out that resumes again", script: script({}), fromMs: unansweredMs, ending: { phase: "elapsed", generation: 0, fence: 2, isResumedAgain: true },
    feedback: { timeoutMs: unansweredMs as never, onTimeout: "resume_again" },
  },
  {
    name: "archive that was full for a while", script: script({}, { ...retry, verb: "complete" }), fromMs: apart, ending: { phase: "terminal", generation: 0, fence: 3 },
    accidents: [{ atMs: apart - second, happen: limitTerminals(1) }, { atMs: apart + 40 * second, happen: limitTerminals(1_000_000) }],
  },
  {
    name: "whole life", fromMs: second, ending: { phase: "terminal", generation: 1, fence: 5 },
    script: script({ retryWait: { delayMs: 5 * second } }, retry, { atMs: 2 * apart, verb: "complete", generation: 1 }),
  },
  ...collections,
];

function dieBeforeResume(world: SimulatedWorld): void {
  const stop = world.broker.watch((change) => {
    if (change.kind !== "stored" || change.stream !== streamNames.state || !change.message.subject.includes(".t.")) return;
    stop();
    for (const worker of world.workers) worker.kill();
    world.timeline.after(0, () => loseSchedules(world));
  });
}
