/** Conformance of administration: creating, updating, describing; creating never updates and the other way round. */
import { describe, expect, test } from "vitest";
import { consumerConfig, eventually, message, must } from "./jetstream.ts";
import type { TestBed } from "./jetstream.ts";

export function describeAdmin(bed: TestBed): void {
  describe("administration", () => {
    test("creates a stream with every feature it asked for, and describes it", async () => {
      const stream = bed.unusedName();
      const config = { ...bed.streamConfig(stream), max_bytes: 1_000_000, metadata: { owner: "me" } };
      const created = must(await bed.connection.admin.createStream(config));
      expect(created.config).toMatchObject({ ...config, metadata: expect.objectContaining({ owner: "me" }) as unknown });
      await bed.store([message(`${stream}.a`), message(`${stream}.a`)]);
      const state = await bed.state(stream);
      expect(state).toMatchObject({ name: stream, messages: 2, firstSequence: 1, lastSequence: 2, createdAt: created.createdAt });
      expect(state.bytes).toBeGreaterThan(0);
      expect(state.replicas).toHaveLength(bed.broker.replicas - 1);
      expect(Math.abs((state.serverTimeMs ?? 0) - Date.now())).toBeLessThan(30_000);
      expect(bed.broker.replicas === 1 || state.leader !== undefined).toBe(true);
    });

    test("creating the same stream again changes nothing, and another one under its name is a conflict", async () => {
      const stream = await bed.stream();
      expect((await bed.connection.admin.createStream(bed.streamConfig(stream))).kind).toBe("told");
      const other = await bed.connection.admin.createStream({ ...bed.streamConfig(stream), max_msgs: 7 });
      expect(other).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "STREAM_EXISTS" } });
    });

    test("updates a stream in place, and creates none by updating", async () => {
      const stream = await bed.stream();
      expect(must(await bed.connection.admin.updateStream({ ...bed.streamConfig(stream), max_msgs: 7 })).config).toMatchObject({ max_msgs: 7 });
      const missing = bed.unusedName();
      expect(await bed.connection.admin.updateStream(bed.streamConfig(missing))).toMatchObject({ kind: "failed", failure: { code: "STREAM_MISSING" } });
      expect(await bed.jetStream.streamState(missing)).toMatchObject({ kind: "failed", failure: { code: "STREAM_MISSING" } });
    });

    test("refuses what cannot be changed, and subjects that are somebody else's", async () => {
      const stream = await bed.stream();
      expect(await bed.connection.admin.updateStream({ ...bed.streamConfig(stream), retention: "workqueue" })).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "STREAM_INCOMPATIBLE" } });
      const overlapping = { ...bed.streamConfig(bed.unusedName()), subjects: [`${stream}.a`] };
      expect(await bed.connection.admin.createStream(overlapping)).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "STREAM_SUBJECT_OVERLAP" } });
    });

    test("refuses to schedule where new messages are discarded", async () => {
      const config = { ...bed.streamConfig(bed.unusedName()), allow_msg_schedules: true };
      expect(await bed.connection.admin.createStream(config)).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "STREAM_INCOMPATIBLE" } });
    });

    test("refuses more replicas than there are servers", async () => {
      const config = { ...bed.streamConfig(bed.unusedName()), num_replicas: 5 };
      expect(await bed.connection.admin.createStream(config)).toMatchObject({ kind: "failed", failure: { code: "STREAM_REPLICAS_UNAVAILABLE" } });
    });

    test("deletes a stream, and tells when there is none", async () => {
      const stream = await bed.stream();
      must(await bed.connection.admin.deleteStream(stream));
      expect(await bed.connection.admin.deleteStream(stream)).toMatchObject({ kind: "failed", failure: { code: "STREAM_MISSING" } });
    });

    test("creates and updates consumers, each only as asked", async () => {
      const { stream } = await bed.workQueue({ max_ack_pending: 10 });
      const { admin } = bed.connection;
      expect((await admin.createConsumer(stream, { ...consumerConfig, max_ack_pending: 10 })).kind).toBe("told");
      expect(await admin.createConsumer(stream, { ...consumerConfig, max_ack_pending: 11 })).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "CONSUMER_EXISTS" } });
      expect(must(await admin.updateConsumer(stream, { ...consumerConfig, max_ack_pending: 12 })).config).toMatchObject({ max_ack_pending: 12 });
      expect(await admin.updateConsumer(stream, { ...consumerConfig, durable_name: "other", filter_subject: `${stream}.a` })).toMatchObject({ kind: "failed", failure: { code: "CONSUMER_MISSING" } });
    });

    test("refuses a consumer that would share messages of a work queue", async () => {
      const { stream } = await bed.workQueue();
      const overlapping = { ...consumerConfig, durable_name: "other" };
      expect(await bed.connection.admin.createConsumer(stream, overlapping)).toMatchObject({ kind: "failed", failure: { kind: "invalid", code: "CONSUMER_INCOMPATIBLE" } });
    });

    test("describes a consumer, and creates one that is paused", async () => {
      const stream = await bed.stream({ retention: "workqueue" });
      const pause_until = new Date(Date.now() + 60_000).toISOString();
      must(await bed.connection.admin.createConsumer(stream, { ...consumerConfig, pause_until }));
      await bed.store([message(`${stream}.a`)]);
      // What a consumer tells of its stream follows a moment behind.
      await eventually("the message counts", async () => must(await bed.jetStream.consumerState(stream, consumerConfig.durable_name)).pending === 1);
      const state = must(await bed.jetStream.consumerState(stream, consumerConfig.durable_name));
      expect(state).toMatchObject({ name: "C", pending: 1, ackPending: 0, redelivered: 0, paused: true });
      expect(state.pauseRemainingMs).toBeGreaterThan(50_000);
      expect(await bed.jetStream.consumerState(stream, "none")).toMatchObject({ kind: "failed", failure: { code: "CONSUMER_MISSING" } });
    });

    test("tells the account's usage and who the user is", async () => {
      const account = must(await bed.jetStream.accountState());
      expect(account.apiLevel).toBeGreaterThanOrEqual(4);
      expect(account.streams).toBeGreaterThan(0);
      const user = must(await bed.connection.admin.user());
      expect(user.accountName).not.toBe("");
      expect(Math.abs(user.serverTimeMs - Date.now())).toBeLessThan(30_000);
    });
  });
}
