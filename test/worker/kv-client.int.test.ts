import { jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { decodeRecord } from "../../src/protocol/record-codec.ts";
import { bucketName, stateKey } from "../../src/protocol/names.ts";
import { timerKey } from "../../src/timer/identity.ts";
import { sha256 } from "../timer/records.ts";
import { openWorld, request } from "./world.ts";

test("any key-value client can read the live state, and sees an ended timer as purged", async () => {
  await using world = await openWorld();
  await world.startWorker();
  const { waiting } = await world.client.start(request("seen-by-others", { wait: { delayMs: 60_000 } }), { awaitOutcome: true });
  const connection = await connect({ servers: [...world.servers.urls] });
  const bucket = await new Kvm(jetstream(connection)).open(bucketName);
  const key = stateKey(timerKey(waiting.lineage, sha256));
  expect(decodeRecord((await bucket.get(key))?.value ?? new Uint8Array())).toMatchObject({ ok: true, record: { phase: "waiting", lineage: waiting.lineage } });
  await world.client.fail(waiting, { code: "cancelled", message: "" });
  const ended = await bucket.get(key);
  expect(ended?.operation ?? "PURGE").toBe("PURGE");
  await connection.close();
});
