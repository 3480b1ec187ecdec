/** Conformance of scheduled messages: the part of the broker that wakes timers. */
import { describe, expect, test } from "vitest";
import type { EpochMs } from "../../src/base/units.ts";
import type { OutgoingMessage } from "../../src/nats/core/jetstream.ts";
import { consumerConfig, eventually, message, must, takeExactly } from "./jetstream.ts";
import type { TestBed } from "./jetstream.ts";

export function describeSchedules(bed: TestBed): void {
  /** As SCHEDULES is configured: asynchronous on one replica. */
  const scheduling = async (): Promise<string> => {
    const isAsync = bed.broker.replicas === 1;
    const stream = await bed.stream({
      retention: "workqueue", discard: "old", allow_msg_schedules: true, allow_msg_ttl: false, allow_atomic: !isAsync, ...(isAsync ? { persist_mode: "async" } : {}),
    });
    must(await bed.connection.admin.createConsumer(stream, { ...consumerConfig, filter_subject: `${stream}.wake.>` }));
    return stream;
  };
  const schedule = (stream: string, { name, inMs, ...over }: { readonly name: string; readonly inMs: number } & Partial<OutgoingMessage>): OutgoingMessage =>
    message(`${stream}.schedule.${name}`, { schedule: { fireAtMs: (Date.now() + inMs) as EpochMs, target: `${stream}.wake.${name}` }, body: new Uint8Array(0), ...over });

  describe("a schedule", () => {
    test("becomes a message on its target, with its own headers, and not before its time", async () => {
      const stream = await scheduling();
      const planned = schedule(stream, { name: "a", inMs: 1_200, headers: [["Durable-Timer-Fence", "0:1"]] });
      await bed.store([planned]);
      expect((await bed.state(stream)).messages).toBe(1);
      const source = bed.jetStream.openSource({ stream, consumer: consumerConfig.durable_name, lookahead: 10 });
      const [wake] = await takeExactly(source, 1);
      expect(wake?.message.subject).toBe(`${stream}.wake.a`);
      expect(wake?.message.headers.get("Durable-Timer-Fence")).toBe("0:1");
      expect(wake?.message.body).toHaveLength(0);
      expect(Number((wake?.message.timestampNs ?? 0n) / 1_000_000n)).toBeGreaterThanOrEqual(planned.schedule?.fireAtMs ?? Number.POSITIVE_INFINITY);
      expect(wake?.settle({ kind: "ack" })).toBe(true);
      await eventually("neither schedule nor wake is left", async () => (await bed.state(stream)).messages === 0);
      await source.close();
    });

    test("whose time has passed fires at once", async () => {
      const stream = await scheduling();
      await bed.store([schedule(stream, { name: "late", inMs: -60_000 })]);
      const source = bed.jetStream.openSource({ stream, consumer: consumerConfig.durable_name, lookahead: 10 });
      expect(await takeExactly(source, 1, 5_000)).toHaveLength(1);
      await source.close();
    });

    test("that expects nothing on its subject does not replace another one", async () => {
      const stream = await scheduling();
      const first = schedule(stream, { name: "a", inMs: 60_000, expectedLastSubjectSequence: 0 });
      const [stored, again] = [...(await bed.jetStream.publish([first])), ...(await bed.jetStream.publish([first]))];
      expect([stored?.kind, again]).toEqual(["stored", { kind: "conflict" }]);
    });

    test("replaces the one over whose sequence it is written, and only the new one fires", async () => {
      const stream = await scheduling();
      const [sequence] = await bed.store([schedule(stream, { name: "a", inMs: 60_000, headers: [["Durable-Timer-Fence", "0:1"]] })]);
      await bed.store([schedule(stream, { name: "a", inMs: 300, headers: [["Durable-Timer-Fence", "1:3"]], expectedLastSubjectSequence: sequence ?? 0 })]);
      expect((await bed.state(stream)).messages).toBe(1);
      const source = bed.jetStream.openSource({ stream, consumer: consumerConfig.durable_name, lookahead: 10 });
      const [wake] = await takeExactly(source, 1);
      expect(wake?.message.headers.get("Durable-Timer-Fence")).toBe("1:3");
      await source.close();
    });

    test("that is purged never fires", async () => {
      const stream = await scheduling();
      await bed.store([schedule(stream, { name: "gone", inMs: 400 }), schedule(stream, { name: "kept", inMs: 900 })]);
      expect(must(await bed.jetStream.purge({ stream, subject: `${stream}.schedule.gone` }))).toEqual({ purged: 1 });
      const source = bed.jetStream.openSource({ stream, consumer: consumerConfig.durable_name, lookahead: 10 });
      const [wake] = await takeExactly(source, 1);
      expect(wake?.message.subject).toBe(`${stream}.wake.kept`);
      expect((await bed.state(stream)).messages).toBe(1);
      await source.close();
    });

    test("is refused by a stream that does not schedule", async () => {
      const stream = await bed.stream();
      const [outcome] = await bed.jetStream.publish([schedule(stream, { name: "a", inMs: 1_000 })]);
      expect(outcome).toMatchObject({ kind: "refused", failure: { code: "BROKER_FEATURE_MISSING" } });
    });
  });
}
