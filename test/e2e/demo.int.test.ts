// The demo as a person runs it.

import { expect, it } from "vitest";
import { runProgram } from "../bin/programs.ts";

it("the demo opens the gates in order, loses nothing to a killed worker, and ends with the right table", { timeout: 300_000 }, async () => {
  const { code, output } = await runProgram("demo", []);
  expect(code, output).toBe(0);

  const gates = [...output.matchAll(/gate (\w+) +open/g)].map(([, gate]) => gate);
  expect(gates).toEqual(["BrokerReachable", "BrokerCompatible", "TopologyReady", "WorkersReady", "ResumeOpen", "Ready"]);
  expect(output).toMatch(/SIGKILL +worker w\d/);
  for (const timer of ["one-shot", "retries-twice", "retries-too-often", "crash-6"]) {
    expect(output).toMatch(new RegExp(`${timer} +\\d +due \\S+ +woken \\S+ +resumed \\S+ +late by \\d`));
  }
  expect(output).toMatch(/fails-while-waiting +failed while waiting: accepted/);
  for (const row of ["started", "archived as completed", "archived as failed: max_retries_exceeded", "archived as failed: order_cancelled"]) {
    expect(output).toMatch(new RegExp(`^${row} +(\\d+) +\\1  ok$`, "m"));
  }
  for (const row of ["lost", "early", "payload changed", "unfinished"]) expect(output).toMatch(new RegExp(`^${row} +0 +0  ok$`, "m"));
});
