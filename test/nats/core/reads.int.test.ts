import { expect, onTestFinished, test } from "vitest";
import { openBroker } from "../../../src/nats/core/connection.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { systemRandom } from "../../../src/system/random.ts";
import { message, ms, must } from "../../conformance/jetstream.ts";
import { startServers } from "../../servers.ts";

// The server ends a reply at the number of bytes that it was given, and says how much is left.
test("what did not fit in one reply of a replica is asked for again, and not taken for absent", async () => {
  const servers = await startServers();
  const connection = openBroker({ servers: servers.urls, name: "test" }, { clock: systemClock, random: systemRandom });
  const { jetStream, admin } = connection;
  onTestFinished(async () => {
    await connection.close();
    await servers.stop();
  });
  must(await connection.connected(ms(30_000)));
  must(await admin.createStream({ name: "S", subjects: ["s.>"], allow_direct: true }));
  const subjects = Array.from({ length: 40 }, (_, index) => `s.${String(index)}`);
  const outcomes = await jetStream.publish(subjects.map((subject, index) => message(subject, { body: new Uint8Array(300_000).fill(index) })));
  expect(outcomes.every(({ kind }) => kind === "stored")).toBe(true);
  const read = await jetStream.readLast({ stream: "S", subjects: [...subjects, "s.missing"], from: "replica" });
  expect(read.map((last) => (last.kind === "found" ? last.message.body[0] : last.kind))).toEqual([...subjects.keys(), "absent"]);
});
