import { describe, expect, it } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import type { LocalNotice } from "../../src/local/local-run.ts";
import { noticeLines } from "../../src/local/notice-text.ts";

const condition = { type: "TopologyReady", status: "False", reason: "Provisioning", message: "Streams are being created.", lastTransitionTime: "" } as const;

const rows: readonly { readonly notice: LocalNotice; readonly lines: readonly string[] }[] = [
  { notice: { kind: "file_accepted", path: "a.yaml", generation: 3 }, lines: ["a.yaml: accepted as generation 3"] },
  { notice: { kind: "file_refused", path: "a.yaml", problems: ["spec.x is not a field", "spec.y is required"] }, lines: ["a.yaml cannot be used:", "  - spec.x is not a field", "  - spec.y is required"] },
  { notice: { kind: "server_ready", url: "nats://127.0.0.1:1", pid: 7 }, lines: ["nats-server: ready at nats://127.0.0.1:1 (pid 7)"] },
  { notice: { kind: "server_exited", problem: "was ended by SIGKILL" }, lines: ["nats-server: was ended by SIGKILL"] },
  { notice: { kind: "worker_started", slot: "w1", pid: 7 }, lines: ["worker w1: started (pid 7)"] },
  { notice: { kind: "worker_ready", slot: "w1", pid: 7 }, lines: ["worker w1: ready"] },
  { notice: { kind: "worker_unready", slot: "w1", pid: 7 }, lines: ["worker w1: no longer ready"] },
  { notice: { kind: "worker_exited", slot: "w1", problem: "exited with code 1", restartMs: 1_500 as DurationMs }, lines: ["worker w1: exited with code 1; starts again in 1.5 s"] },
  { notice: { kind: "worker_stopped", slot: "w1" }, lines: ["worker w1: stopped"] },
  { notice: { kind: "leftover_stopped", role: "nats-server", pid: 9 }, lines: ["nats-server: ended, left behind by an earlier run (pid 9)"] },
  { notice: { kind: "condition_turned", condition }, lines: ["TopologyReady    False   Provisioning: Streams are being created."] },
  { notice: { kind: "condition_turned", condition: { ...condition, status: "True", reason: "Provisioned", message: "" } }, lines: ["TopologyReady    True    Provisioned"] },
  { notice: { kind: "event", event: { severity: "Warning", reason: "Stalled", message: "Nothing moves." } }, lines: ["warning Stalled: Nothing moves."] },
  { notice: { kind: "event", event: { severity: "Normal", reason: "StreamCreated", message: "Created a stream." } }, lines: [] },
];

it("warns of a server that had to move", () => {
  expect(noticeLines({ kind: "port_moved", from: 4222, to: 5000 })).toEqual(["nats-server: port 4222 is taken by another program; from now on clients must use 5000"]);
});

describe("noticeLines", () => {
  it.each(rows)("says $lines", ({ notice, lines }) => {
    expect(noticeLines(notice)).toEqual(lines);
  });
});
