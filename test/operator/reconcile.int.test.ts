// The operator against real servers: its own planner and controller, the real broker adapter, and a cluster in memory.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { brokerLossGraceMs } from "../../src/base/limits.ts";
import { statedPauseUntilMs } from "../../src/operator/plan/pauses.ts";
import { commandSubjects, consumerNames, streamNames } from "../../src/protocol/names.ts";
import type { Patch } from "../resource/examples.ts";
import { startServers } from "../servers.ts";
import type { NatsServers, ServerVersion } from "../servers.ts";
import { gatesOpen, Operator, orders, small, withServer } from "./nats-bed.ts";
import { spec } from "./plan/scenes.ts";

describe.each<ServerVersion>(["recommended", "floor"])("an operator on one server (%s)", (version) => {
  it("goes from an empty server to Ready in a few passes, and then sends nothing", async () => {
    await withServer({ version }, {}, async ({ operator, somebody }) => {
      expect(await operator.settle()).toBeLessThanOrEqual(5);
      expect(operator.conditions().slice(0, 6)).toEqual(gatesOpen);
      expect({ count: operator.broker.writes.length, wasStalled: operator.wasStalled }).toEqual({ count: 13, wasStalled: false });
      const writes = operator.cluster.writes.length;
      expect(await operator.pass()).toBe("unchanged");
      expect(operator.broker.writes).toHaveLength(13);
      expect(operator.cluster.writes).toHaveLength(writes);
      const resume = await somebody.consumer(streamNames.resumes, consumerNames.resume);
      expect(resume.paused).toBe(false);
      expect((await somebody.stream(streamNames.schedules)).config["persist_mode"]).toBe("async");
    });
  });
});

describe("an operator on one server", () => {
  it("starts again over what is there and changes nothing", async () => {
    await withServer({}, {}, async ({ servers, operator }) => {
      await operator.settle();
      const again = new Operator(servers.urls, operator.cluster);
      expect(await again.pass()).toBe("unchanged");
      expect(again.broker.writes).toEqual([]);
      await again.sessions.closeAll();
    });
  });

  it("starts again without a status and changes nothing in NATS", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      const lives = await Promise.all(Object.values(streamNames).map(async (name) => (await somebody.stream(name)).createdAt));
      const { resources } = operator.cluster;
      const resource = resources.get("payments/orders");
      if (resource !== undefined) delete resource.status;
      const again = new Operator(servers.urls, operator.cluster);
      await again.settle();
      expect({ writes: again.broker.writes, conditions: again.conditions().slice(0, 6) }).toEqual({ writes: [], conditions: gatesOpen });
      expect(await Promise.all(Object.values(streamNames).map(async (name) => (await somebody.stream(name)).createdAt))).toEqual(lives);
      await again.sessions.closeAll();
    });
  });

  it("finds its data when the resource is deleted and applied again", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      const before = await somebody.stream(streamNames.commands);
      operator.cluster.delete(orders);
      expect(await operator.pass()).toBe("gone");
      operator.cluster.put(orders, spec(small));
      await operator.settle();
      const after = await somebody.stream(streamNames.commands);
      expect({ created: after.createdAt, messages: after.messages }).toEqual({ created: before.createdAt, messages: 1 });
      expect(operator.conditions().slice(0, 6)).toEqual(gatesOpen);
    });
  });

  it("makes a deleted consumer anew, and no message is lost or skipped", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      await somebody.deleteConsumer(streamNames.commands, consumerNames.start);
      await operator.settle();
      expect((await somebody.consumer(streamNames.commands, consumerNames.start)).pending).toBe(1);
      expect(operator.conditions().slice(0, 6)).toEqual(gatesOpen);
      expect(operator.cluster.events.slice(-4).map(({ reason }) => reason)).toContain("ConsumerCreated");
    });
  });

  it("puts back what somebody changed, with one update, and leaves the rest of the configuration", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.updateStream(streamNames.terminals, { max_bytes: 4_000_000, description: "kept" });
      const { length } = operator.broker.writes;
      await operator.settle();
      expect(operator.broker.writes.slice(length)).toEqual(["updateStream"]);
      const { config } = await somebody.stream(streamNames.terminals);
      expect([config["max_bytes"], config["description"]]).toEqual([64 * 1024 * 1024, "kept"]);
      expect(operator.cluster.events.at(-1)?.reason).toBe("DriftRepaired");
    });
  });

  it("makes SCHEDULES anew when it is missing, although it held schedules", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish("durable_timer.wake.v1.orders.x");
      await operator.settle();
      await somebody.deleteStream(streamNames.schedules);
      await operator.settle();
      expect(operator.conditions().slice(0, 6)).toEqual(gatesOpen);
      expect((await somebody.stream(streamNames.schedules)).messages).toBe(0);
    });
  });

  it("raises an incident for a lost COMMANDS, and makes it anew only when a person acknowledges it", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      await operator.settle();
      await somebody.deleteStream(streamNames.commands);
      await operator.settle();
      expect(operator.conditions()).toEqual(expect.arrayContaining(["Ready False TopologyLost", "Stalled True TopologyLost"]));
      await expect(somebody.stream(streamNames.commands)).rejects.toMatchObject({ code: "STREAM_MISSING" });
      const id = operator.cluster.status(orders)?.incidents?.[0]?.id ?? "";
      expect(id).toMatch(/^lost-commands-[0-9a-f]{8}$/);
      operator.cluster.put(orders, spec({ ...small, acknowledge: [id] }));
      await operator.settle();
      expect(operator.conditions().slice(0, 6)).toEqual(gatesOpen);
      expect(operator.cluster.status(orders)?.incidents).toEqual([]);
      await somebody.publish(commandSubjects.start);
      await operator.settle();
      await somebody.deleteStream(streamNames.commands);
      await operator.settle();
      expect(operator.conditions()).toContain("Stalled True TopologyLost");
    });
  });

  it("sees that STATE was emptied", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      await operator.settle();
      await somebody.purge(streamNames.state);
      await operator.settle();
      expect(operator.cluster.status(orders)?.incidents?.[0]?.id).toMatch(/^emptied-state-/);
    });
  });

});

describe("an operator that meets what it may not touch", () => {
  it("refuses streams of another owner and touches nothing, until the policy names that owner", async () => {
    await withServer({}, {}, async ({ servers, operator, somebody }) => {
      await operator.settle();
      await somebody.publish(commandSubjects.start);
      const other = new Operator(servers.urls);
      const theirs = { namespace: "payments", name: "other" };
      other.cluster.put(theirs, spec(small));
      await other.settle(theirs);
      expect({ writes: other.broker.writes, conditions: other.conditions(theirs).slice(0, 4) }).toEqual({
        writes: [],
        conditions: ["Ready False OwnedByAnother", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady False OwnedByAnother"],
      });
      expect(other.cluster.workers.size).toBe(0);
      const adoption = { policy: "FromOwner", fromOwner: "fake-cluster/payments/orders" };
      other.cluster.put(theirs, spec({ ...small, topology: { ...(small["topology"] as Patch), adoption } }));
      await other.settle(theirs);
      expect(other.conditions(theirs).slice(0, 6)).toEqual(gatesOpen);
      expect((await somebody.stream(streamNames.commands)).messages).toBe(1);
      await operator.settle();
      expect(operator.conditions()).toContain("Ready False OwnedByAnother");
      await other.sessions.closeAll();
    });
  });

  it("does not take a stream of that name that nobody stamped", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await somebody.createStream({ name: streamNames.snapshots, subjects: ["durable_timer.snapshot.v1.>"], storage: "file" });
      await operator.settle();
      expect(operator.broker.writes).toEqual([]);
      expect(operator.conditions()).toContain("Ready False AdoptionRefused");
    });
  });

  it("names a subject that another stream takes", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await somebody.createStream({ name: "THEIRS", subjects: ["durable_timer.terminal.>"], storage: "file" });
      await operator.settle();
      expect(operator.conditions()).toEqual(expect.arrayContaining(["Ready False SubjectOverlap", "Stalled True SubjectOverlap"]));
    });
  });

  it("names storage that does not suffice", async () => {
    await withServer({ maxFileStore: 32 * 1024 * 1024 }, {}, async ({ operator }) => {
      await operator.settle();
      expect(operator.conditions()).toEqual(expect.arrayContaining(["Ready False InsufficientStorage", "Stalled True InsufficientStorage"]));
      expect(operator.message("TopologyReady")).toContain("spec.topology.streams");
    });
  });

  it("names JetStream that is off", async () => {
    await withServer({ config: "accounts { OFF { users: [{user: u, password: p}] } }\nno_auth_user: u" }, {}, async ({ operator }) => {
      await operator.settle();
      expect(operator.conditions()).toContain("Ready False JetStreamDisabled");
    });
  });

  it("refuses more replicas than one server holds, before anything is sent", async () => {
    await withServer({}, { topology: { ...(small["topology"] as Patch), replicas: 3 } }, async ({ operator }) => {
      await operator.settle();
      expect(operator.broker.writes).toEqual([]);
      expect(operator.conditions()).toContain("Ready False ReplicasExceedCluster");
    });
  });

  it("refuses another account than the guarded one, before anything is sent", async () => {
    await withServer({}, { nats: { servers: ["nats://x:4222"], accountName: "PAYMENTS" } }, async ({ operator }) => {
      await operator.settle();
      expect(operator.broker.writes).toEqual([]);
      expect(operator.conditions()).toContain("Ready False WrongAccount");
    });
  });

});

describe("an operator that is asked to wait", () => {
  it("stops and starts admission and resumes as the spec says", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      operator.cluster.put(orders, spec({ ...small, admission: { state: "Closed" }, resume: { state: "Paused" } }));
      await operator.settle();
      expect(operator.conditions()).toEqual(expect.arrayContaining(["Ready False ResumePaused", "AdmissionOpen False ClosedBySpec"]));
      const [start, resume] = await Promise.all([somebody.consumer(streamNames.commands, consumerNames.start), somebody.consumer(streamNames.resumes, consumerNames.resume)]);
      expect([start.paused, resume.paused]).toEqual([true, true]);
      expect(resume.config["pause_until"]).toBe(new Date(statedPauseUntilMs).toISOString().replace(".000Z", "Z"));
      // A change beside it does not end the pause.
      operator.cluster.put(orders, spec({ ...small, admission: { state: "Closed" }, resume: { state: "Paused", ackWaitSeconds: 90 } }));
      await operator.settle();
      expect((await somebody.consumer(streamNames.resumes, consumerNames.resume)).paused).toBe(true);
      operator.cluster.put(orders, spec(small));
      await operator.settle();
      expect(operator.conditions()).toEqual(expect.arrayContaining(["Ready True Serving", "AdmissionOpen True Open"]));
      expect((await somebody.consumer(streamNames.commands, consumerNames.start)).paused).toBe(false);
    });
  });

  it("shows a pause of somebody else and does not undo it", async () => {
    await withServer({}, {}, async ({ operator, somebody }) => {
      await operator.settle();
      await somebody.pause(streamNames.resumes, consumerNames.resume, Date.now() + 3_600_000);
      const { length } = operator.broker.writes;
      await operator.settle();
      expect(operator.conditions()).toContain("Ready False ResumePaused");
      expect(operator.broker.writes).toHaveLength(length);
    });
  });

  it("holds an outage, and continues when the server is back", async () => {
    await withServer({}, {}, async ({ servers, operator }) => {
      await operator.settle();
      await servers.servers[0]?.kill();
      expect(await operator.pass()).toBe("unchanged");
      expect(operator.conditions()[0]).toBe("Ready True Serving");
      await servers.servers[0]?.start();
      await expect.poll(() => operator.pass(), { timeout: brokerLossGraceMs, interval: 200 }).toBe("unchanged");
      expect(operator.conditions().slice(0, 6)).toEqual(gatesOpen);
    });
  });
});

describe("an operator on three servers", () => {
  let servers: NatsServers;
  let operator: Operator;
  beforeAll(async () => {
    servers = await startServers({ count: 3 });
    operator = new Operator(servers.urls);
    operator.cluster.put(orders, spec({ ...small, topology: { ...(small["topology"] as Patch), replicas: 3 } }));
  });
  afterAll(async () => {
    await operator.sessions.closeAll();
    await servers.stop();
  });

  it("goes from nothing to Ready with three replicas, and then sends nothing", async () => {
    await expect.poll(async () => [await operator.pass(), ...operator.conditions().slice(0, 6)], { timeout: 50_000, interval: 300 }).toEqual(["unchanged", ...gatesOpen]);
    expect(operator.conditions()).toContain("ReplicasHealthy True AllCurrent");
    const { length } = operator.broker.writes;
    expect({ length, wasStalled: operator.wasStalled }).toEqual({ length: 13, wasStalled: false });
    await operator.pass();
    expect(operator.broker.writes).toHaveLength(length);
  });

  it("shows a server that is away as an unhealthy replica, and stays Ready", async () => {
    const health = async (): Promise<readonly string[]> => {
      await operator.pass();
      return operator.conditions().filter((text) => /^(Ready|ReplicasHealthy) /.test(text)).map((text) => text.split(" ").slice(0, 2).join(" "));
    };
    await servers.servers[2]?.kill();
    await expect.poll(health, { timeout: 25_000, interval: 500 }).toEqual(["Ready True", "ReplicasHealthy False"]);
    await servers.servers[2]?.start();
    await expect.poll(health, { timeout: 25_000, interval: 500 }).toEqual(["Ready True", "ReplicasHealthy True"]);
  });
});
