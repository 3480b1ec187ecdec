/** A plan as text for people: what would be done and why, and what the resource would show. Stable: no times in it. */
import { isoFromEpochMs } from "../../base/units.ts";
import type { Action } from "./action.ts";
import type { Plan } from "./plan.ts";

/** The lines of a plan, each ending in a newline. */
export function explainPlan({ actions, status, requeueAfterMs }: Plan): string {
  const steps = actions.length === 0 ? ["Nothing to do."] : actions.map((action, index) => `${String(index + 1)}. ${explainAction(action)}, because ${action.because}.`);
  const conditions = (status.conditions ?? []).map(({ type, status: is, reason, message }) => {
    const text = `  ${type.padEnd(typeWidth)} ${is.padEnd(statusWidth)} ${reason}`;
    return message === "" ? text : `${text}: ${message}`;
  });
  const incidents = (status.incidents ?? []).map(({ id, message }) => `  ${id}: ${message}`);
  return [
    ...steps,
    "Conditions:",
    ...conditions,
    ...(incidents.length === 0 ? [] : ["Incidents:", ...incidents]),
    ...(requeueAfterMs === undefined ? [] : [`Looks again after ${String(Math.round(requeueAfterMs / 1_000))} s.`]),
    "",
  ].join("\n");
}

/** One action in a few words, without its reason. */
export function explainAction(action: Action): string {
  switch (action.kind) {
    case "CreateStream":
      return `Create stream ${named(action.config, "name")}`;
    case "UpdateStream":
      return `Update stream ${named(action.config, "name")} (${action.changes.join(", ")})`;
    case "AdoptStream":
      return `Take over stream ${named(action.config, "name")} from ${action.from}`;
    case "WriteOwnerKey":
      return `Write the owner's key ${action.text}`;
    case "CreateConsumer":
      return `Create consumer ${named(action.config, "durable_name")} on ${action.stream}${pauseText(action.config)}`;
    case "UpdateConsumer":
      return `Update consumer ${named(action.config, "durable_name")} on ${action.stream} (${action.changes.join(", ")})`;
    case "PauseConsumer":
      return `Pause consumer ${action.consumer} on ${action.stream} until ${isoFromEpochMs(action.untilMs)}`;
    case "UnpauseConsumer":
      return `Open consumer ${action.consumer} on ${action.stream}`;
    case "DeleteStream":
      return `Delete stream ${action.stream}`;
    case "PurgeStream":
      return `Purge ${action.subject} of stream ${action.stream}`;
    case "SetFinalizer":
      return action.isHeld ? "Hold the resource until its streams are deleted" : "Let go of the resource";
    case "ApplyWorkers":
      return action.changes.length === 0 ? "Create the workers" : `Update the workers (${action.changes.join(", ")})`;
  }
}

function named(config: Readonly<Record<string, unknown>>, field: string): string {
  return String(config[field]);
}

function pauseText(config: Readonly<Record<string, unknown>>): string {
  const until = config["pause_until"];
  return typeof until === "string" ? `, paused until ${until}` : "";
}

const typeWidth = 16;
const statusWidth = 7;
