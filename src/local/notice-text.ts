/** What happens in local mode, as lines for people. */
import { unreachable } from "../base/assert.ts";
import type { LocalNotice } from "./local-run.ts";

/** The lines of one notice; none when it says nothing that a person has to know. */
export function noticeLines(notice: LocalNotice): readonly string[] {
  switch (notice.kind) {
    case "file_accepted":
      return [`${notice.path}: accepted as generation ${String(notice.generation)}`];
    case "file_refused":
      return [`${notice.path} cannot be used:`, ...notice.problems.map((problem) => `  - ${problem}`)];
    case "server_ready":
      return [`nats-server: ready at ${notice.url} (pid ${String(notice.pid)})`];
    case "server_exited":
      return [`nats-server: ${notice.problem}`];
    case "worker_started":
      return [`worker ${notice.slot}: started (pid ${String(notice.pid)})`];
    case "worker_ready":
      return [`worker ${notice.slot}: ready`];
    case "worker_unready":
      return [`worker ${notice.slot}: no longer ready`];
    case "worker_exited":
      return [`worker ${notice.slot}: ${notice.problem}; starts again in ${(notice.restartMs / 1_000).toFixed(1)} s`];
    case "worker_stopped":
      return [`worker ${notice.slot}: stopped`];
    case "leftover_stopped":
      return [`${notice.role}: ended, left behind by an earlier run (pid ${String(notice.pid)})`];
    case "port_moved":
      return [`nats-server: port ${String(notice.from)} is taken by another program; from now on clients must use ${String(notice.to)}`];
    case "condition_turned":
      return [conditionLine(notice.condition)];
    case "event":
      return notice.event.severity === "Warning" ? [`warning ${notice.event.reason}: ${notice.event.message}`] : [];
    default:
      return unreachable(notice);
  }
}

/** One condition: type, status, reason, and its message when it has one. */
export function conditionLine(condition: { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }): string {
  const { type, status, reason, message } = condition;
  const text = `${type.padEnd(typeWidth)} ${status.padEnd(statusWidth)} ${reason}`;
  return message === "" ? text : `${text}: ${message}`;
}

const typeWidth = 16;
const statusWidth = 7;
