import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { streamNames } from "../../src/protocol/names.ts";
import { waiting } from "../timer/records.ts";
import { freshKey, openBed } from "./bed.ts";
import type { Bed } from "./bed.ts";

let bed: Bed;
beforeAll(async () => {
  bed = await openBed({ config: "accounts { APP { jetstream { max_file: 1G }, users: [ { user: a, password: a } ] } }\nno_auth_user: a" });
});
afterAll(() => bed[Symbol.asyncDispose]());

describe("usage", () => {
  test("tells what the streams and the account hold of what they may", async () => {
    await bed.ports.state.write([{ key: freshKey(), record: waiting() }]);
    const usage = await bed.ports.capacity.usage();
    expect(usage).toMatchObject({
      state: { messages: 1, bytesMax: 64 * 2 ** 20 }, snapshots: { messages: 0, bytes: 0 }, terminals: { messages: 0 }, account: { bytesMax: 10 ** 9, replicas: 1 },
    });
    expect(usage?.state.bytes).toBeGreaterThan(300);
  });

  test("has no maximum where a stream has no limit", async () => {
    const { config } = bed.topology.streams.find(({ role }) => role === "snapshots") ?? {};
    await bed.connection.admin.updateStream({ ...config, max_bytes: -1 });
    expect((await bed.ports.capacity.usage())?.snapshots).toEqual({ messages: 0, bytes: 0 });
  });

  test("is unknown when one stream does not answer", async () => {
    await bed.connection.admin.deleteStream(streamNames.terminals);
    expect(await bed.ports.capacity.usage()).toBeUndefined();
  });
});
