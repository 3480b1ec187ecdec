import { describe, expect, it } from "vitest";
import { topologyRules, unmetRequirements, type ReportedConsumers, type ReportedStreams } from "../../src/topology/requirements.ts";
import { stampKeys } from "../../src/topology/stamp.ts";
import { topologyOf } from "./input.ts";

const { streams, consumers } = topologyOf({});
const reportedStreams = Object.fromEntries(streams.map(({ role, config }) => [role, config])) as ReportedStreams;
const reportedConsumers: ReportedConsumers = Object.fromEntries(consumers.map(({ role, config }) => [role, config]));

const withState = (changes: object): ReportedStreams => ({ ...reportedStreams, state: { ...reportedStreams.state, ...changes } });

describe("unmetRequirements", () => {
  it("is empty for what the operator creates", () => {
    expect(unmetRequirements(reportedStreams, reportedConsumers)).toEqual([]);
  });

  it("does not care for sizes, replicas, placement, another uid or the flow owner's consumer", () => {
    const metadata = { ...(reportedStreams.state?.["metadata"] as object), [stampKeys.ownerUid]: "another" };
    const { resume: _resume, ...rest } = reportedConsumers;
    expect(unmetRequirements(withState({ max_bytes: 1, num_replicas: 5, placement: { cluster: "x" }, metadata }), rest)).toEqual([]);
  });

  it("does not keep a worker from its work for a feature that it does not use", () => {
    expect(unmetRequirements({ ...reportedStreams, commands: { ...reportedStreams.commands, allow_rollup_hdrs: true } }, reportedConsumers)).toEqual([]);
  });

  const rows = [
    { name: "a missing stream", streams: { ...reportedStreams, commands: undefined }, consumers: reportedConsumers, want: ["stream DURABLE_TIMER_COMMANDS does not exist"] },
    { name: "a missing consumer", streams: reportedStreams, consumers: { ...reportedConsumers, wake: undefined }, want: ["consumer DURABLE_TIMER_WAKE_SERVICE does not exist"] },
    {
      name: "a stream that nobody stamped",
      streams: withState({ metadata: {} }),
      consumers: reportedConsumers,
      want: ["stream KV_DURABLE_TIMER_STATE has layout version 0; this worker needs 1"],
    },
    {
      name: "a stream that expires records",
      streams: withState({ max_age: 5 }),
      consumers: reportedConsumers,
      want: ["stream KV_DURABLE_TIMER_STATE has max_age 5; this worker needs 0"],
    },
    {
      name: "a server that does not know schedules",
      streams: { ...reportedStreams, schedules: { ...reportedStreams.schedules, allow_msg_schedules: undefined } },
      consumers: reportedConsumers,
      want: ["stream DURABLE_TIMER_SCHEDULES has allow_msg_schedules unset; this worker needs true"],
    },
    {
      name: "a consumer with a filter of somebody else",
      streams: reportedStreams,
      consumers: { ...reportedConsumers, start: { ...reportedConsumers.start, filter_subject: "x" } },
      want: ['consumer DURABLE_TIMER_COMMAND_SERVICE has filter_subject "x"; this worker needs ""'],
    },
  ];

  it.each(rows)("names $name", ({ streams: has, consumers: delivers, want }) => {
    expect(unmetRequirements(has, delivers as ReportedConsumers)).toEqual(want);
  });
});

describe("topologyRules", () => {
  it("reads the incarnation of a stream", () => {
    expect([topologyRules.readStamp(reportedStreams.schedules ?? {})?.incarnation, topologyRules.readStamp({})]).toEqual(["i-schedules", undefined]);
  });
});
