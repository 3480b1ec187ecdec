import { isTrue } from "../resource/conditions.ts";
import type { DurableTimerStatus } from "../resource/durable-timer.ts";
import type { CliTools, LookedLocal, Place } from "./tools.ts";
import { complainOfFile } from "./validate.ts";

/** Prints what local mode last wrote down about a file's resource. */
export function status(tools: CliTools, place: Place): void {
  const looked = tools.lookLocal(place);
  if (looked.kind === "refused") {
    complainOfFile(tools, place.filePath, looked.problems);
    return;
  }
  for (const line of statusLines(looked)) tools.print(line);
  const isServing = looked.holder !== undefined && isTrue(looked.status?.conditions ?? [], "Ready");
  tools.exitWith(isServing ? 0 : 1);
}

function statusLines({ name, generation, status: is, holder }: Extract<LookedLocal, { kind: "found" }>): readonly string[] {
  const running = holder === undefined ? "not running" : `running in process ${String(holder)}`;
  if (is === undefined) return [`DurableTimer ${name}: ${running}; it has never run here`];
  const note = holder === undefined ? " (as it was when it last ran)" : "";
  return [
    `DurableTimer ${name}: ${running}${note}`,
    `  generation       ${String(generation)}, observed ${String(is.observedGeneration)}`,
    ...partLines(is),
    "Conditions:",
    ...(is.conditions ?? []).map(({ type, status: word, reason, message }) => `  ${type.padEnd(16)} ${word.padEnd(7)} ${reason}${message === "" ? "" : `: ${message}`}`),
    ...(is.incidents ?? []).flatMap(({ id, message }, index) => [...(index === 0 ? ["Incidents:"] : []), `  ${id}: ${message}`]),
  ];
}

function partLines({ broker, timers, workers, capacity }: DurableTimerStatus): readonly string[] {
  const line = (label: string, text: string): string => `  ${label.padEnd(16)} ${text}`;
  return [
    ...(broker?.version === undefined ? [] : [line("NATS", broker.version)]),
    ...(capacity?.worstStream === undefined ? [] : [line("fullest stream", `${capacity.worstStream}, ${String(capacity.worstPercent ?? 0)} %`)]),
    ...(workers === undefined ? [] : [line("workers", `${workers.summary ?? String(workers.replicas)} ready`)]),
    ...(timers === undefined ? [] : [line("timers", timersText(timers))]),
  ];
}

function timersText({ waiting = "?", awaitingFeedback = "?", overdue = "?" }: NonNullable<DurableTimerStatus["timers"]>): string {
  return `${waiting} waiting, ${awaitingFeedback} await feedback, ${overdue} overdue`;
}
