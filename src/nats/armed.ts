/** What schedules and wakes carry: which transition armed them and when they are due, in headers that firing keeps. */
import type { EpochMs } from "../base/units.ts";
import { headerNames } from "../protocol/names.ts";
import type { StoredMessage } from "../protocol/message.ts";
import type { Armed } from "../worker/ports.ts";

/** Headers of a schedule of this transition and due time. */
export function armedHeaders({ generation, fence, dueAtMs }: Pick<Armed, "generation" | "fence" | "dueAtMs">): readonly (readonly [string, string])[] {
  return [
    [headerNames.fence, `${String(generation)}:${String(fence)}`],
    [headerNames.dueAt, String(dueAtMs)],
  ];
}

/** Something that we did not write reads as older than every timer, so that it is overwritten and its wake ignored. */
export function armedIn(message: StoredMessage): Armed {
  const { sequence } = message;
  const fence = /^(\d{1,10}):(\d{1,10})$/.exec(message.headers.get(headerNames.fence) ?? "");
  const dueAt = /^\d{1,16}$/.exec(message.headers.get(headerNames.dueAt) ?? "");
  if (fence === null || dueAt === null) return { generation: 0, fence: 0, dueAtMs: 0 as EpochMs, sequence };
  return { generation: Number(fence[1]), fence: Number(fence[2]), dueAtMs: Number(dueAt[0]) as EpochMs, sequence, ...fireAtOf(message) };
}

function fireAtOf({ headers }: StoredMessage): Pick<Armed, "fireAtMs"> {
  const instant = /^@at (\S+)$/.exec(headers.get("Nats-Schedule") ?? "")?.[1];
  const fireAtMs = instant === undefined ? Number.NaN : Date.parse(instant);
  return Number.isNaN(fireAtMs) ? {} : { fireAtMs: fireAtMs as EpochMs };
}
