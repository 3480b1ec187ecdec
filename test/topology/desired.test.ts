import { describe, expect, it } from "vitest";
import { doubtfulCountMax } from "../../src/base/limits.ts";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import { consumerStreams, creationOrder } from "../../src/topology/desired.ts";
import { consumerOf, streamOf, topologyOf } from "./input.ts";

const metadata = (role: string): Record<string, string> => ({
  "durable_timer.owner": "cluster-1/payments/orders",
  "durable_timer.owner_uid": "0d3e",
  "durable_timer.incarnation": `i-${role}`,
  "durable_timer.layout_version": "1",
});

describe("streams", () => {
  it("are created from the claim to the door", () => {
    expect(topologyOf({}).streams.map(({ role }) => role)).toEqual(["state", "snapshots", "terminals", "schedules", "resumes", "feedback", "commands"]);
  });

  it("render STATE as a bucket that never evicts", () => {
    expect(streamOf("state").config).toEqual({
      name: "KV_DURABLE_TIMER_STATE",
      subjects: ["$KV.DURABLE_TIMER_STATE.>"],
      storage: "file",
      retention: "limits",
      discard: "new",
      discard_new_per_subject: false,
      max_msgs: -1,
      max_bytes: 10 * 2 ** 30,
      max_age: 0,
      max_msg_size: -1,
      max_msgs_per_subject: 1,
      num_replicas: 1,
      allow_direct: true,
      allow_atomic: true,
      allow_rollup_hdrs: true,
      allow_msg_ttl: true,
      deny_delete: false,
      deny_purge: false,
      sealed: false,
      no_ack: false,
      duplicate_window: 120_000_000_000,
      metadata: metadata("state"),
    });
  });

  it("list the subjects of the contract, each in one stream", () => {
    expect(Object.fromEntries(topologyOf({}).streams.map(({ role, config }) => [role, config["subjects"]]))).toEqual({
      state: ["$KV.DURABLE_TIMER_STATE.>"],
      commands: ["durable_timer.commands.start.v1"],
      feedback: ["durable_timer.commands.retry.v1", "durable_timer.commands.complete.v1", "durable_timer.commands.fail.v1"],
      snapshots: ["durable_timer.snapshot.v1.>"],
      terminals: ["durable_timer.terminal.v1.>"],
      schedules: ["durable_timer.schedule.v1.>", "durable_timer.wake.v1.>"],
      resumes: ["triggers.v2.durable_timer.resume.v1"],
    });
  });

  const rows = [
    { name: "no stream has an age limit", field: "max_age", want: [0], because: "nothing that is live expires by time" },
    { name: "all streams are on disk", field: "storage", want: ["file"], because: "an acknowledged start survives a restart" },
    { name: "no stream has a limit of messages", field: "max_msgs", want: [-1], because: "sizes are the one limit that a person sets" },
  ];

  it.each(rows)("agree: $name", ({ field, want, because }) => {
    expect([...new Set(topologyOf({}).streams.map(({ config }) => config[field]))], because).toEqual(want);
  });

  it("refuse when they are full, but for SCHEDULES, which has no limit", () => {
    const limits = topologyOf({}).streams.map(({ role, config }) => [role, config["discard"], config["max_bytes"] === -1] as const);
    expect(limits.filter(([, discard, isUnlimited]) => discard !== "new" || isUnlimited)).toEqual([["schedules", "old", true]]);
  });

  it("let nobody roll up what senders write, so that one header cannot remove every pending command", () => {
    const open = topologyOf({}).streams.filter(({ config }) => config["allow_rollup_hdrs"] !== false).map(({ role }) => role);
    expect(open, "STATE and TERMINALS are rolled up by us; servers insist on it for schedules").toEqual(["state", "terminals", "schedules"]);
  });

  it("write SCHEDULES asynchronously and without atomic batches at one replica only", () => {
    const of = (replicas: number): unknown[] => ["num_replicas", "persist_mode", "allow_atomic", "allow_msg_schedules"].map((field) => streamOf("schedules", { topology: { replicas } }).config[field]);
    expect([of(1), of(3), of(5)]).toEqual([[1, "async", false, true], [3, "default", true, true], [5, "default", true, true]]);
  });

  it("are placed where the spec says", () => {
    expect(streamOf("state").config).not.toHaveProperty("placement");
    const placed = topologyOf({ topology: { placement: { cluster: "eu-1", tags: ["ssd"] } } }).streams;
    expect(placed.every(({ config }) => JSON.stringify(config["placement"]) === '{"cluster":"eu-1","tags":["ssd"]}')).toBe(true);
  });

  it("carry each their own incarnation", () => {
    expect(topologyOf({}).streams.map(({ role, config }) => [role, config["metadata"]])).toEqual(topologyOf({}).streams.map(({ role }) => [role, metadata(role)]));
  });
});

describe("consumers", () => {
  it("render the consumer of wakes with the only filter", () => {
    expect(consumerOf("wake").config).toEqual({
      durable_name: "DURABLE_TIMER_WAKE_SERVICE",
      filter_subject: "durable_timer.wake.v1.>",
      deliver_policy: "all",
      ack_policy: "explicit",
      replay_policy: "instant",
      ack_wait: 12_000_000_000,
      max_deliver: -1,
      max_ack_pending: 2_000,
      max_waiting: 512,
      num_replicas: 0,
      inactive_threshold: 0,
      metadata: { "durable_timer.owner": "cluster-1/payments/orders", "durable_timer.owner_uid": "0d3e", "durable_timer.layout_version": "1" },
    });
    expect((["start", "feedback", "resume"] as const).filter((role) => "filter_subject" in consumerOf(role).config)).toEqual([]);
  });

  it("give the flow's owner the wait and look-ahead of spec.resume", () => {
    const { config } = consumerOf("resume", { resume: { ackWaitSeconds: 7, maxAckPending: 9 }, workers: { maxAckPending: 5 } });
    expect([config["ack_wait"], config["max_ack_pending"]]).toEqual([7_000_000_000, 9]);
    expect(consumerOf("start", { workers: { maxAckPending: 5 } }).config["max_ack_pending"]).toBe(5);
    // What waits for a second look does not keep other feedback from being delivered.
    expect(consumerOf("feedback", { workers: { maxAckPending: 5 } }).config["max_ack_pending"]).toBe(5 + doubtfulCountMax);
  });
});

describe("creationOrder", () => {
  it("puts each consumer right after its stream, and the door of COMMANDS last", () => {
    expect(creationOrder(topologyOf({})).map(({ name }) => name)).toEqual([
      streamNames.state, streamNames.snapshots, streamNames.terminals,
      streamNames.schedules, consumerNames.wake,
      streamNames.resumes, consumerNames.resume,
      streamNames.feedback, consumerNames.feedback,
      streamNames.commands, consumerNames.start,
    ]);
  });

  it("knows where every consumer delivers from", () => {
    expect(topologyOf({}).consumers.map(({ role, streamRole }) => consumerStreams[role] === streamRole)).toEqual([true, true, true, true]);
  });
});
