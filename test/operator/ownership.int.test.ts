// Whose streams they are, on real servers: nothing is stolen, and nothing is deleted because something is absent.

import { describe, expect, it } from "vitest";
import { commandSubjects, streamNames } from "../../src/protocol/names.ts";
import { stampKeys } from "../../src/topology/stamp.ts";
import { FakeCluster } from "../fakes/cluster.ts";
import type { Patch } from "../resource/examples.ts";
import { gatesOpen, Operator, orders, small, withServer } from "./nats-bed.ts";
import type { Somebody } from "./nats-bed.ts";
import { spec } from "./plan/scenes.ts";

const allStreams = Object.values(streamNames);

/** Lives of all streams, which tell a stream that stayed from one that was made anew. */
async function lives(somebody: Somebody): Promise<readonly string[]> {
  return await Promise.all(allStreams.map(async (name) => `${name} ${(await somebody.stream(name)).createdAt}`));
}

/** An operator of another Kubernetes cluster. */
function operatorOf(clusterId: string, urls: readonly string[]): Operator {
  return new Operator(urls, new FakeCluster({ connection: { servers: urls, name: "operator test" }, clusterId }));
}

const adopting = (adoption: Patch): Patch => ({ ...small, topology: { ...(small["topology"] as Patch), adoption } });

describe("the same resource in another life", () => {
  it("finds its streams when it is deleted and applied again, and stamps them with its new uid", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      const before = await lives(somebody);
      const { [stampKeys.incarnation]: incarnation } = await somebody.metadata(streamNames.state);
      operator.cluster.delete(orders);
      expect(await operator.pass()).toBe("gone");
      operator.cluster.put(orders, spec(small));
      await operator.settle();
      expect(await lives(somebody)).toEqual(before);
      expect(await somebody.metadata(streamNames.state)).toMatchObject({ [stampKeys.ownerUid]: "uid-2", [stampKeys.incarnation]: incarnation });
      expect(operator.conditions().slice(0, 6)).toEqual(gatesOpen);
    });
  });

  it("finds its streams when the whole operator was uninstalled meanwhile", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      const before = await lives(somebody);
      await operator.sessions.closeAll();
      const again = operatorOf("fake-cluster", servers.urls);
      again.cluster.put(orders, spec(small));
      await again.settle();
      expect({ lives: await lives(somebody), conditions: again.conditions().slice(0, 6) }).toEqual({ lives: before, conditions: gatesOpen });
      expect((await somebody.stream(streamNames.commands)).messages).toBe(1);
      await again.sessions.closeAll();
    });
  });

  it("finds its streams from a cluster that was made again under the old cluster's id", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      const before = await lives(somebody);
      const elsewhere = operatorOf("another-cluster", servers.urls);
      elsewhere.cluster.put(orders, spec(small));
      await elsewhere.settle();
      expect({ writes: elsewhere.broker.writes, ready: elsewhere.conditions()[0] }, "another id is another owner").toEqual({ writes: [], ready: "Ready False OwnedByAnother" });
      const restored = operatorOf("fake-cluster", servers.urls);
      restored.cluster.put(orders, spec(small));
      await restored.settle();
      expect({ lives: await lives(somebody), conditions: restored.conditions().slice(0, 6) }).toEqual({ lives: before, conditions: gatesOpen });
      await Promise.all([elsewhere.sessions.closeAll(), restored.sessions.closeAll()]);
    });
  });
});

describe("two owners on one account", () => {
  it("of one cluster: the first has it, and the second touches nothing", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      const second = { namespace: "payments", name: "second" };
      operator.cluster.put(second, spec(small));
      await operator.settle();
      const before = operator.broker.writes.length;
      await operator.settle(second);
      expect({ writes: operator.broker.writes.slice(before), ready: operator.conditions(second)[0] }).toEqual({ writes: [], ready: "Ready False OwnedByAnother" });
      expect((await somebody.metadata(streamNames.state))[stampKeys.ownerId]).toBe("fake-cluster/payments/orders");
      expect(operator.cluster.workers.has("payments/second")).toBe(false);
    });
  });

  it("of two clusters with the same names: the first has it, and the second touches nothing", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      const other = operatorOf("other-cluster", servers.urls);
      other.cluster.put(orders, spec(small));
      await other.settle();
      expect({ writes: other.broker.writes, ready: other.conditions()[0] }).toEqual({ writes: [], ready: "Ready False OwnedByAnother" });
      expect((await somebody.metadata(streamNames.state))[stampKeys.ownerId]).toBe("fake-cluster/payments/orders");
      expect(await operator.pass(), "and the first has not noticed").toBe("unchanged");
      await other.sessions.closeAll();
    });
  });

  it("that begin at the same moment: one of them gets everything, the other nothing", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      const other = operatorOf("other-cluster", servers.urls);
      other.cluster.put(orders, spec(small));
      const both = [operator, other];
      await Promise.all(both.map((one) => one.pass()));
      await Promise.all(both.map((one) => one.pass()));
      for (const one of both) await one.settle();
      const owners = await Promise.all(allStreams.map(async (name) => (await somebody.metadata(name))[stampKeys.ownerId]));
      expect(new Set(owners).size).toBe(1);
      expect(both.map((one) => one.conditions()[0]).sort()).toEqual(["Ready False OwnedByAnother", "Ready True Serving"]);
      await other.sessions.closeAll();
    });
  });

  it("whose resource goes without its streams: the other one does not inherit them by that", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      const before = await lives(somebody);
      operator.cluster.delete(orders);
      expect(await operator.pass()).toBe("gone");
      const other = operatorOf("other-cluster", servers.urls);
      other.cluster.put(orders, spec(small));
      await other.settle();
      expect({ ready: other.conditions()[0], lives: await lives(somebody) }).toEqual({ ready: "Ready False OwnedByAnother", lives: before });
      await other.sessions.closeAll();
    });
  });
});

describe("adoption", () => {
  it("takes from the named owner, with all data, and the old owner then touches nothing", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      const before = await lives(somebody);
      const heir = operatorOf("other-cluster", servers.urls);
      heir.cluster.put(orders, spec(adopting({ policy: "FromOwner", fromOwner: "fake-cluster/payments/orders" })));
      await heir.settle();
      expect({ lives: await lives(somebody), conditions: heir.conditions().slice(0, 6) }).toEqual({ lives: before, conditions: gatesOpen });
      expect((await somebody.stream(streamNames.commands)).messages).toBe(1);
      const { length } = operator.broker.writes;
      await operator.settle();
      expect({ writes: operator.broker.writes.slice(length), ready: operator.conditions()[0] }).toEqual({ writes: [], ready: "Ready False OwnedByAnother" });
      await heir.sessions.closeAll();
    });
  });

  it("stops when the stream has got another owner since it was looked at", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      const { config } = await somebody.stream(streamNames.terminals);
      const theirs = { ...(await somebody.metadata(streamNames.terminals)), [stampKeys.ownerId]: "third/a/b" };
      await somebody.updateStream(streamNames.terminals, { metadata: theirs });
      const session = operator.sessions.current(orders);
      const adopted = await session?.adoptStream({ config, mark: { [stampKeys.ownerId]: "fake-cluster/payments/orders" } });
      expect(adopted).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "STORE_CONFLICT" } });
      expect((await somebody.metadata(streamNames.terminals))[stampKeys.ownerId]).toBe("third/a/b");
    });
  });

  it("takes what nobody owns only when it is told to", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      for (const name of allStreams) {
        const { [stampKeys.ownerId]: _owner, ...rest } = await somebody.metadata(name);
        await somebody.updateStream(name, { metadata: rest });
      }
      const before = await lives(somebody);
      await operator.settle();
      expect(operator.conditions()).toContain("Ready False AdoptionRefused");
      operator.cluster.put(orders, spec(adopting({ policy: "IfUnowned" })));
      await operator.settle();
      expect({ lives: await lives(somebody), ready: operator.conditions()[0] }).toEqual({ lives: before, ready: "Ready True Serving" });
      expect((await somebody.metadata(streamNames.state))[stampKeys.ownerId]).toBe("fake-cluster/payments/orders");
    });
  });
});

describe("the guard of the account", () => {
  const accounts = "accounts { A { jetstream: enabled, users: [{user: a, password: p}] }, B { jetstream: enabled, users: [{user: b, password: p}] } }";

  it("keeps an edited list of servers, or another user, from making an empty twin", async () => {
    await withServer({ config: `${accounts}\nno_auth_user: a` }, { nats: { servers: ["nats://x:4222"], accountName: "A" } }, async ({ servers, operator }) => {
      await operator.settle();
      expect(operator.conditions()[0]).toBe("Ready True Serving");
      const { length } = operator.broker.writes;
      operator.cluster.connection = { kind: "resolved", warnings: [], options: { servers: servers.urls, name: "operator test", auth: { kind: "user", user: "b", password: "p" } } };
      await operator.settle();
      expect({ writes: operator.broker.writes.slice(length), ready: operator.conditions()[0] }).toEqual({ writes: [], ready: "Ready False WrongAccount" });
    });
  });

  it("is not needed where data was held: then the move itself is an incident", async () => {
    await withServer({ config: `${accounts}\nno_auth_user: a` }, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      await operator.settle();
      const { length } = operator.broker.writes;
      operator.cluster.connection = { kind: "resolved", warnings: [], options: { servers: servers.urls, name: "operator test", auth: { kind: "user", user: "b", password: "p" } } };
      await operator.settle();
      expect({ writes: operator.broker.writes.slice(length), ready: operator.conditions()[0] }).toEqual({ writes: [], ready: "Ready False BrokerChanged" });
      const id = operator.cluster.status(orders)?.incidents?.[0]?.id ?? "";
      expect(id).toMatch(/^moved-broker-/);
      operator.cluster.put(orders, spec({ ...small, acknowledge: [id] }));
      await operator.settle();
      expect({ conditions: operator.conditions().slice(0, 6), account: operator.cluster.status(orders)?.broker?.accountName, incidents: operator.cluster.status(orders)?.incidents }).toEqual({ conditions: gatesOpen, account: "B", incidents: [] });
      expect((await somebody.stream(streamNames.commands)).messages, "what the other account holds stays there").toBe(1);
    });
  });
});
