/**
 * One timer's life by the clock: commands are sent at fixed times, so that two runs differ only in what went wrong between,
 * and must end in the same records.
 */
import { createHash } from "node:crypto";
import { prepareFeedback } from "../../src/client/feedback.ts";
import { prepareStart, type StartRequest } from "../../src/client/start.ts";
import type { CommandMessage } from "../../src/client/command-message.ts";
import { commandSubjects, headerNames, stateRecordFilter, subjectFilters } from "../../src/protocol/names.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { feedbackTimeout } from "../../src/timer/decide-timeout.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import type { Life } from "./ledger.ts";
import type { SimulatedWorld } from "./world.ts";

export type ScriptStep = { readonly atMs: number; readonly verb: "retry" | "complete" | "fail"; readonly generation: number; readonly isWaiting?: boolean };

export type Script = {
  readonly request: StartRequest;
  readonly startAtMs: number;
  readonly steps: readonly ScriptStep[];
};

/** What the life must have come to. */
export type Ending = { readonly phase: TimerRecord["phase"]; readonly generation: number; readonly fence: number; readonly isResumedAgain?: boolean };

/** Plans every command of the script; `duplicates` sends each of them that many times more, without an id. */
export function playScript(world: SimulatedWorld, script: Script, duplicates = 0): void {
  const { broker, timeline } = world;
  const { message, waiting } = prepareStart(script.request, { brokerPayloadBytesMax: undefined }, systemSha256);
  const send = (command: CommandMessage, copy: number): void => {
    const id = copy === 0 ? { messageId: command.messageId } : {};
    broker.streamOf(commandSubjects[command.verb])?.publish({ subject: commandSubjects[command.verb], headers: [[headerNames.context, command.contextHeader]], body: command.body, ...id });
  };
  const plan = (atMs: number, command: CommandMessage): void => {
    for (let copy = 0; copy <= duplicates; copy += 1) timeline.after(atMs + copy * duplicateAfterMs, () => send(command, copy));
  };
  plan(script.startAtMs, message);
  for (const { atMs, verb, generation, isWaiting } of script.steps) {
    const target = { ...waiting, generation, fence: 2 * generation + (isWaiting === true ? 1 : 2) };
    const own = { target, body: Buffer.from(`${verb} ${String(generation)}`) };
    plan(atMs, prepareFeedback(verb === "fail" ? { ...own, verb, failure: { code: "gave_up", message: "" } } : { ...own, verb }, { brokerPayloadBytesMax: undefined }, systemSha256));
  }
}

/** True when the only timer of this world has come to `ending` and nothing of it is on its way any more. */
export function hasCome(world: SimulatedWorld, ending: Ending): boolean {
  const [life] = [...world.ledger.lives.values()];
  const last = life?.records.at(-1);
  if (life === undefined || last?.phase !== ending.phase || last.generation !== ending.generation || last.fence !== ending.fence) return false;
  const left = world.messages("commands").length + world.messages("feedback").length + world.messages("schedules", subjectFilters.wakes).length;
  return left === 0 && isComplete(world, { life, last, ending });
}

/** True when everything that follows from its last record is stored. */
function isComplete(world: SimulatedWorld, { life, last, ending }: { readonly life: Life; readonly last: TimerRecord; readonly ending: Ending }): boolean {
  switch (last.phase) {
    case "waiting":
      return world.messages("schedules", subjectFilters.schedules).some(({ headers }) => headers.get(headerNames.fence) === `${String(last.generation)}:${String(last.fence)}`);
    case "elapsed":
      return life.resumes.has(last.generation) && (ending.isResumedAgain !== true || (last.resumedAgainAtMs !== undefined && life.resumeCount > 1));
    case "terminal":
      return life.archived !== undefined && world.messages("state", stateRecordFilter).every(({ body }) => body.length === 0);
  }
}

/**
 * One hash over a world's records in their order. Times at which a worker came to something are left out, since they are
 * what disturbances change; that they are not too early is an invariant of its own.
 */
export function recordsHash(world: SimulatedWorld): string {
  const hash = createHash("sha256");
  for (const life of [...world.ledger.lives.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    for (const record of life.records) hash.update(JSON.stringify({ ...record, elapsedAtMs: undefined, ...timesOfSweeps(record) }));
    for (const resume of life.resumes.values()) hash.update(resume.body);
  }
  return hash.digest("hex");
}

function timesOfSweeps(record: TimerRecord): { readonly resumedAgainAtMs?: boolean; readonly endedAtMs?: number | undefined } {
  if (record.phase === "elapsed") return { resumedAgainAtMs: record.resumedAgainAtMs !== undefined };
  return record.phase === "terminal" && record.failure?.code === feedbackTimeout ? { endedAtMs: undefined } : {};
}

const duplicateAfterMs = 700;
