import { describe, expect, it } from "vitest";
import { consumerUpdates, diffConsumer, diffStream, streamUpdates } from "../../src/topology/diff.ts";
import type { Difference, ServerConfig } from "../../src/topology/layout.ts";
import { consumerOf, streamOf } from "./input.ts";

/** A server reports what it was given without what is empty, and adds words of its own. */
function reported(config: ServerConfig): ServerConfig {
  const kept = Object.entries(config).filter(([, value]) => value !== false && value !== 0 && value !== "default");
  const metadata = { ...(config["metadata"] as Record<string, string>), "_nats.ver": "2.15.2", "_nats.level": "5" };
  return { ...Object.fromEntries(kept), metadata, max_consumers: -1, compression: "none", mirror_direct: false, consumer_limits: {} };
}

const brief = (differences: readonly Difference[]): readonly string[] => differences.map(({ field, remedy }) => `${field}: ${remedy}`);

const state = streamOf("state");
const schedules = streamOf("schedules");
const wake = consumerOf("wake");
const start = consumerOf("start");

describe("diffStream", () => {
  it.each(["state", "commands", "feedback", "snapshots", "terminals", "schedules", "resumes"] as const)("finds nothing in %s as a server reports it", (role) => {
    expect(diffStream(streamOf(role), reported(streamOf(role).config))).toEqual([]);
    expect(streamUpdates(streamOf(role), reported(streamOf(role).config))).toEqual([]);
  });

  const rows: readonly { readonly name: string; readonly actual: ServerConfig; readonly want: readonly string[]; readonly because: string }[] = [
    { name: "another size", actual: { max_bytes: 5 }, want: ["max_bytes: update"], because: "sizes change in place" },
    { name: "a size without limit", actual: { max_bytes: -1 }, want: ["max_bytes: update"], because: "without a limit nothing is refused" },
    { name: "limits spelled as zero", actual: { max_msgs: 0, max_msg_size: 0 }, want: [], because: "older servers say 0 for none" },
    { name: "an age limit", actual: { max_age: 3_600_000_000_000 }, want: ["max_age: update"], because: "it deletes live records" },
    { name: "eviction", actual: { discard: "old" }, want: ["discard: update"], because: "it deletes live records" },
    { name: "another subject", actual: { subjects: ["x"] }, want: ["subjects: update"], because: "records would go elsewhere" },
    { name: "no direct reads", actual: { allow_direct: false }, want: ["allow_direct: update"], because: "workers read that way" },
    { name: "memory storage", actual: { storage: "memory" }, want: ["storage: immutable"], because: "a server never moves a stream between storages" },
    { name: "a work queue", actual: { retention: "workqueue" }, want: ["retention: immutable"], because: "servers change nothing to or from a work queue" },
    { name: "interest retention", actual: { retention: "interest" }, want: ["retention: update"], because: "between limits and interest servers change in place" },
    { name: "refused deletes", actual: { deny_delete: true, sealed: true }, want: ["deny_delete: immutable", "sealed: immutable"], because: "both are for ever" },
    { name: "other settings of a person", actual: { compression: "s2", description: "ours", republish: { src: ">" } }, want: [], because: "they are not owned" },
    { name: "a mirror", actual: { mirror: { name: "X" } }, want: ["mirror: immutable"], because: "a mirror stores what another stream says" },
    { name: "sources", actual: { sources: [{ name: "X" }] }, want: ["sources: update"], because: "foreign records would appear" },
    { name: "a subject transform", actual: { subject_transform: { src: "a", dest: "b" } }, want: ["subject_transform: update"], because: "records would be stored under other keys" },
    { name: "a placement", actual: { placement: { cluster: "eu-2" } }, want: ["placement: update"], because: "the spec wants none" },
    { name: "an empty placement", actual: { placement: {} }, want: [], because: "it places nothing" },
    { name: "another owner", actual: { metadata: {} }, want: ["metadata: update"], because: "whether that is allowed is for the plan to say" },
  ];

  it.each(rows)("judges $name", ({ actual, want, because }) => {
    expect(brief(diffStream(state, { ...reported(state.config), ...actual })), because).toEqual(want);
  });

  it("takes tags and subjects as sets", () => {
    const placed = streamOf("feedback", { topology: { placement: { tags: ["a", "b"] } } });
    const { subjects } = placed.config as { readonly subjects: readonly string[] };
    expect(diffStream(placed, { ...reported(placed.config), subjects: [...subjects].reverse(), placement: { tags: ["b", "a"] } })).toEqual([]);
  });

  it("cannot turn SCHEDULES from asynchronous to replicated, or back", () => {
    const replicated = streamOf("schedules", { topology: { replicas: 3 } });
    expect(brief(diffStream(replicated, reported(schedules.config)))).toContain("persist_mode: immutable");
    expect(brief(diffStream(schedules, reported(replicated.config)))).toContain("persist_mode: immutable");
  });
});

describe("streamUpdates", () => {
  it("carries over what is not owned, and lays over what is", () => {
    const actual = { ...reported(state.config), max_bytes: 5, compression: "s2", description: "ours", sources: [{ name: "X" }] };
    const [update] = streamUpdates(state, actual);
    expect(update).toMatchObject({ max_bytes: 10 * 2 ** 30, compression: "s2", description: "ours", metadata: state.config["metadata"] as object });
    expect(update).not.toHaveProperty("sources");
    expect(Object.keys((update as { readonly metadata: object }).metadata)).not.toContain("_nats.ver");
  });

  it("keeps metadata of others", () => {
    const actual = { ...reported(state.config), max_bytes: 5, metadata: { team: "payments" } };
    expect(streamUpdates(state, actual)[0]?.["metadata"]).toEqual({ team: "payments", ...(state.config["metadata"] as object) });
  });

  it("takes a placement away that the spec does not want", () => {
    const [update] = streamUpdates(state, { ...reported(state.config), placement: { cluster: "eu-2" } });
    expect(update).not.toHaveProperty("placement");
  });

  it("moves first and scales then, because servers refuse both at once", () => {
    const moved = streamOf("state", { topology: { replicas: 3, placement: { cluster: "eu-2" } } });
    const updates = streamUpdates(moved, { ...reported(moved.config), num_replicas: 5, placement: { cluster: "eu-1" } });
    expect(updates.map((update) => [update["num_replicas"], update["placement"]])).toEqual([
      [5, { cluster: "eu-2", tags: [] }],
      [3, { cluster: "eu-2", tags: [] }],
    ]);
  });
});

describe("diffConsumer", () => {
  it.each(["wake", "start", "feedback", "resume"] as const)("finds nothing in %s as a server reports it", (role) => {
    const { config } = consumerOf(role);
    expect(diffConsumer(consumerOf(role), { ...reported(config), name: config["durable_name"], pause_until: "2026-11-30T20:00:00Z" })).toEqual([]);
    expect(consumerUpdates(consumerOf(role), reported(config))).toEqual([]);
  });

  const rows: readonly { readonly name: string; readonly consumer: typeof wake; readonly actual: ServerConfig; readonly want: readonly string[]; readonly because: string }[] = [
    { name: "another wait", consumer: start, actual: { ack_wait: 1 }, want: ["ack_wait: update"], because: "waits change in place" },
    { name: "a limit of deliveries", consumer: start, actual: { max_deliver: 5 }, want: ["max_deliver: update"], because: "a command would be given up" },
    { name: "a back-off list", consumer: start, actual: { backoff: [1, 2] }, want: ["backoff: update"], because: "it takes the place of the wait" },
    { name: "a filter that is not wanted", consumer: start, actual: { filter_subject: "a.b" }, want: ["filter_subject: immutable"], because: "what it passed over would be delivered to nobody" },
    { name: "a filter that is wanted", consumer: wake, actual: { filter_subject: "a.b" }, want: ["filter_subject: immutable"], because: "what it passed over would be delivered to nobody" },
    { name: "a list of filters", consumer: wake, actual: { filter_subjects: ["a", "b"] }, want: ["filter_subjects: immutable"], because: "schedules would be consumed as wakes" },
    { name: "bodies left out", consumer: start, actual: { headers_only: true }, want: ["headers_only: update"], because: "payload hashes would not match" },
    { name: "an expiry", consumer: start, actual: { inactive_threshold: 5 }, want: ["inactive_threshold: update"], because: "the consumer would vanish while nobody pulls" },
    { name: "no acknowledgements", consumer: start, actual: { ack_policy: "none" }, want: ["ack_policy: immutable"], because: "servers do not change it" },
    { name: "a push consumer", consumer: start, actual: { deliver_subject: "x" }, want: ["deliver_subject: immutable"], because: "servers do not turn it into pull" },
    { name: "another start", consumer: wake, actual: { deliver_policy: "new" }, want: ["deliver_policy: immutable"], because: "servers do not change it" },
  ];

  it.each(rows)("judges $name", ({ consumer, actual, want, because }) => {
    expect(brief(diffConsumer(consumer, { ...reported(consumer.config), ...actual })), because).toEqual(want);
  });
});

describe("consumerUpdates", () => {
  it("takes away what is not wanted and leaves a pause to whoever set it", () => {
    const actual = { ...reported(start.config), name: "x", filter_subject: "a.b", backoff: [1], pause_until: "2026-11-30T20:00:00Z", description: "ours" };
    const [update] = consumerUpdates(start, actual);
    expect(update).toMatchObject({ ...start.config, description: "ours" });
    expect(["filter_subject", "backoff", "pause_until"].filter((field) => field in (update ?? {}))).toEqual([]);
  });
});
