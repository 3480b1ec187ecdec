// What a deletion does on a real server.

import { describe, expect, it } from "vitest";
import { commandSubjects, streamNames } from "../../src/protocol/names.ts";
import { stampKeys } from "../../src/topology/stamp.ts";
import { orders, small, withServer } from "./nats-bed.ts";
import type { Operator, Somebody } from "./nats-bed.ts";
import { spec } from "./plan/scenes.ts";

const deletable = { ...small, deletionPolicy: "Delete" };

async function streamsLeft(somebody: Somebody): Promise<readonly string[]> {
  const looks = await Promise.all(Object.values(streamNames).map(async (name) => await somebody.stream(name).then(() => [name], () => [])));
  return looks.flat();
}

async function passUntilGone(operator: Operator): Promise<void> {
  for (let count = 0; count < 20 && operator.cluster.resources.size > 0; count += 1) await operator.pass();
}

describe("a deletion with the policy Delete", () => {
  it("leaves nothing in NATS", async () => {
    await withServer({}, { deletionPolicy: "Delete" }, async ({ operator, somebody }) => {
      await operator.settle();
      operator.cluster.requestDeletion(orders, Date.now());
      await passUntilGone(operator);
      expect({ resources: operator.cluster.resources.size, left: await streamsLeft(somebody) }).toEqual({ resources: 0, left: [] });
    });
  });

  it("is refused while a start waits; acknowledged, it deletes that too", async () => {
    await withServer({}, { deletionPolicy: "Delete" }, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      operator.cluster.requestDeletion(orders, Date.now());
      await operator.settle();
      expect(operator.conditions()).toContain("Stalled True TimersWaiting");
      expect(await streamsLeft(somebody)).toHaveLength(7);
      const id = operator.cluster.status(orders)?.incidents?.[0]?.id ?? "";
      operator.cluster.put(orders, spec({ ...deletable, acknowledge: [id] }));
      await passUntilGone(operator);
      expect({ resources: operator.cluster.resources.size, left: await streamsLeft(somebody) }).toEqual({ resources: 0, left: [] });
    });
  });

  it("is taken back by the policy Retain: the resource goes, its data stays and is found again", async () => {
    await withServer({}, { deletionPolicy: "Delete" }, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      operator.cluster.requestDeletion(orders, Date.now());
      await operator.settle();
      operator.cluster.put(orders, spec(small));
      await passUntilGone(operator);
      expect(await streamsLeft(somebody)).toHaveLength(7);
      operator.cluster.put(orders, spec(small));
      await operator.settle();
      expect({ ready: operator.conditions()[0], admission: operator.conditions().find((text) => text.startsWith("AdmissionOpen")) }).toEqual({ ready: "Ready True Serving", admission: "AdmissionOpen True Open" });
      expect((await somebody.stream(streamNames.commands)).messages).toBe(1);
    });
  });

  it("leaves a stream that has got another owner since it was looked at", async () => {
    await withServer({}, { deletionPolicy: "Delete" }, async ({ operator, somebody }) => {
      await operator.settle();
      const theirs = { ...(await somebody.metadata(streamNames.terminals)), [stampKeys.ownerId]: "third/a/b" };
      await somebody.updateStream(streamNames.terminals, { metadata: theirs });
      const session = operator.sessions.current(orders);
      const mark = { [stampKeys.ownerId]: "fake-cluster/payments/orders" };
      expect(await session?.deleteStream({ stream: streamNames.terminals, mark, mayHoldMessages: true })).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
      await somebody.publish(commandSubjects.start);
      expect(await session?.deleteStream({ stream: streamNames.commands, mark, mayHoldMessages: false })).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
      expect(await streamsLeft(somebody)).toHaveLength(7);
      expect(await session?.deleteStream({ stream: streamNames.resumes, mark, mayHoldMessages: false })).toEqual({ kind: "done" });
      expect(await session?.deleteStream({ stream: streamNames.resumes, mark, mayHoldMessages: false }), "idempotent").toEqual({ kind: "done" });
      expect(await streamsLeft(somebody)).toHaveLength(6);
    });
  });

  it("ends although the server is gone, once it was patient", async () => {
    await withServer({}, { deletionPolicy: "Delete" }, async ({ servers, operator }) => {
      await operator.settle();
      await servers.stop();
      operator.cluster.requestDeletion(orders, Date.now());
      await operator.pass();
      expect(operator.cluster.resources.size).toBe(1);
      operator.cluster.requestDeletion(orders, Date.now() - 600_000);
      await operator.pass();
      expect(operator.cluster.resources.size).toBe(0);
      expect(operator.cluster.events.at(-1)?.reason).toBe("DataRetained");
    });
  });
});
