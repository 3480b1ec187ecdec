import { unreachable } from "../base/assert.ts";
import type { Basis, Write } from "./decision.ts";
import type { TimerRecord } from "./record.ts";

/** What has to be durable besides the record itself once the record is `record`, in order. */
export function followingWrites(record: TimerRecord): readonly Write[] {
  switch (record.phase) {
    case "waiting":
      return ["schedule"];
    case "elapsed":
      return ["resume"];
    case "terminal":
      // A timer that ended after it elapsed has no schedule left: firing removed it. A stray one is harmless (I7).
      return record.elapsedAtMs === undefined ? ["archive", "unschedule", "remove"] : ["archive", "remove"];
    default:
      return unreachable(record);
  }
}

/** True when a view of basis `has` is at least as good as `needs`. */
export function isAtLeast(has: Basis, needs: Basis): boolean {
  return basisOrder.indexOf(has) >= basisOrder.indexOf(needs);
}

const basisOrder: readonly Basis[] = ["assumed", "replica", "leader", "leader_again"];
