import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { leaseKeys, stateKey, stateSubject, streamNames } from "../../src/protocol/names.ts";
import { natsDataProbe } from "../../src/nats/data-probe.ts";
import { openBroker } from "../../src/nats/core/connection.ts";
import { readStamp } from "../../src/topology/stamp.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import type { Usage } from "../../src/worker/ports.ts";
import { must } from "../conformance/jetstream.ts";
import { waiting } from "../timer/records.ts";
import { create, freshKey, openBed, topologyFor } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed();
});
afterAll(() => bed[Symbol.asyncDispose]());

const key = freshKey();

describe("a look at the data streams", () => {
  test("misses the owner's key until it is written, and tells whose streams they are", async () => {
    expect(await bed.ports.data.look()).toMatchObject({ hasOwnerKey: false, lacksSnapshots: false });
    await bed.connection.jetStream.publish([{ subject: stateSubject(leaseKeys.owner), headers: [], body: Buffer.from("{}") }]);
    const look = await bed.ports.data.look();
    expect(look).toMatchObject({ hasOwnerKey: true, lacksSnapshots: false, streams: { state: { incarnation: "one", lastSequence: 1 }, commands: { incarnation: "one", lastSequence: 0 } } });
    expect(look?.streams.state?.ownerId).not.toBe("");
  });

  test("finds records without any snapshot, but not markers of removed ones", async () => {
    await bed.ports.state.write([{ key, record: waiting() }]);
    expect(await bed.ports.data.look()).toMatchObject({ lacksSnapshots: true });
    await bed.ports.snapshots.create([{ key, snapshot: { contextHeader: "{}", body: new Uint8Array(1) } }]);
    expect(await bed.ports.data.look()).toMatchObject({ lacksSnapshots: false });
    must(await bed.connection.jetStream.purge({ stream: streamNames.snapshots, subject: "durable_timer.snapshot.v1.>" }));
    expect(await bed.ports.data.look()).toMatchObject({ lacksSnapshots: true });
    await bed.ports.state.remove([{ key, expected: 2 }]);
    expect(await bed.ports.data.look()).toMatchObject({ lacksSnapshots: false });
  });

  test("finds an emptied STATE", async () => {
    must(await bed.connection.jetStream.purge({ stream: streamNames.state, subject: stateSubject(leaseKeys.owner) }));
    expect(await bed.ports.data.look()).toMatchObject({ hasOwnerKey: false });
    expect(stateKey(key)).toContain("t.");
  });

  test("finds what is gone and what was made anew", async () => {
    must(await bed.connection.admin.deleteStream(streamNames.terminals));
    expect((await bed.ports.data.look())?.streams.terminals).toBeUndefined();
    await create(bed.connection, { streams: topologyFor(bed.servers, "two").streams.filter(({ role }) => role === "terminals"), consumers: [] });
    expect((await bed.ports.data.look())?.streams).toMatchObject({ terminals: { incarnation: "two" }, snapshots: { incarnation: "one" } });
    must(await bed.connection.admin.deleteStream(streamNames.state));
    expect(await bed.ports.data.look()).toMatchObject({ streams: { state: undefined }, hasOwnerKey: false, lacksSnapshots: false });
  });

  test("knows nothing while the broker is silent", async () => {
    const connection = openBroker({ servers: ["nats://127.0.0.1:1"], name: "nobody" }, { clock: systemClock, random: systemRandom });
    expect(await natsDataProbe(connection.jetStream, readStamp).look()).toBeUndefined();
    await connection.close();
  });
});

describe("an account's usage of replicated streams", () => {
  test("counts every copy, so that what live timers will write counts as often", async () => {
    await using replicated = await openBed({ count: 3, config: "accounts { APP { jetstream { max_file: 4G }, users: [ { user: a, password: a } ] } }\nno_auth_user: a" });
    const body = new Uint8Array(100_000);
    for (let index = 0; index < 10; index += 1) await replicated.ports.snapshots.create([{ key: freshKey(), snapshot: { contextHeader: "{}", body } }]);
    const usage = await waitFor(() => replicated.ports.capacity.usage(), (seen) => seen.account.bytes > 2.5 * seen.snapshots.bytes);
    expect(usage.account.replicas).toBe(3);
    expect(usage.account.bytes / (usage.snapshots.bytes + usage.state.bytes)).toBeGreaterThan(2.9);
  }, 90_000);
});

/** Servers tell each other their usage now and then, not at once. */
async function waitFor(look: () => Promise<Usage | undefined>, isIt: (usage: Usage) => boolean): Promise<Usage> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    const usage = await look();
    if (usage !== undefined && isIt(usage)) return usage;
    await systemClock.sleep(100 as never);
  }
  throw new Error(`did not come: ${JSON.stringify(await look())}`);
}
