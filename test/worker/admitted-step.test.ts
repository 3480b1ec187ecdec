import { expect, test } from "vitest";
import { stepAdmitted } from "../../src/worker/admitted-step.ts";
import type { Gate } from "../../src/worker/admission.ts";
import type { Work } from "../../src/worker/step.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { testTimer } from "../fakes/timers.ts";
import { FakeBroker } from "../fakes/worker-ports.ts";
import { sha256 } from "../timer/records.ts";

function setUp() {
  const clock = new SteppedClock();
  const broker = new FakeBroker(clock);
  const works = [1, 2, 3].map((index): Work => { const { key, start, snapshot } = testTimer(index); return { key, input: start, basis: "assumed", snapshot }; });
  return { broker, works, options: { ports: broker.ports, clock, sha256 } };
}

test("works beyond what the gate lets through are handed back unwritten, and the gate hears of the end", async () => {
  const { broker, works, options } = setUp();
  const told: unknown[] = [];
  const gate: Gate = { isOpen: () => true, waitOpen: () => Promise.resolve(), admit: (sizes) => { told.push(sizes.length, sizes[0]?.bodyBytes); return Promise.resolve({ count: 2, done: () => told.push("done") }); } };
  expect(await stepAdmitted({ ...options, gate }, works)).toMatchObject([{ kind: "done" }, { kind: "done" }, { kind: "hand_back", why: "no_room" }]);
  expect(broker.state.all()).toHaveLength(2);
  expect(told).toEqual([3, works[0]?.snapshot?.body.length, "done"]);
});

test("without a gate everything is stepped", async () => {
  const { works, options } = setUp();
  expect(await stepAdmitted(options, works)).toMatchObject([{ kind: "done" }, { kind: "done" }, { kind: "done" }]);
});
