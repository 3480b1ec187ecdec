import { expect, test } from "vitest";
import { watchStalledMsMax } from "../../src/base/limits.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { hangs, notReady, type Standing } from "../../src/bin/operator-health.ts";

const cluster = (silentForMs: number, isSynced = true): NonNullable<Standing["cluster"]> => ({ isSynced, silentForMs: silentForMs as DurationMs });

const rows: readonly { readonly name: string; readonly standing: Standing; readonly isLive: boolean; readonly isReady: boolean; readonly because: string }[] = [
  { name: "before it knows its cluster", standing: { state: "starting" }, isLive: true, isReady: false, because: "it could do nothing yet" },
  { name: "while it stands by", standing: { state: "standby" }, isLive: true, isReady: true, because: "a rollout waits for it" },
  { name: "while it leads and lists", standing: { state: "leading", cluster: cluster(0, false) }, isLive: true, isReady: false, because: "it does not see everything" },
  { name: "while it leads", standing: { state: "leading", cluster: cluster(watchStalledMsMax) }, isLive: true, isReady: true, because: "a quiet watch is no dead one" },
  { name: "when a watch hangs", standing: { state: "leading", cluster: cluster(watchStalledMsMax + 1) }, isLive: false, isReady: true, because: "only a restart helps" },
];

test.each(rows)("$name it is live: $isLive, and ready: $isReady", ({ standing, isLive, isReady, because }) => {
  expect([hangs(standing).length === 0, notReady(standing).length === 0], because).toEqual([isLive, isReady]);
});
