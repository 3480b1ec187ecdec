// The command line program with everything real: operator, workers, embedded NATS server.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectTimers, type TimerClient } from "../../src/client/index.ts";
import { processIdentity } from "../../src/local/process-identity.ts";
import { tempFolder } from "../local/temp-folder.ts";
import { Program, runProgram } from "./programs.ts";

const root = tempFolder();
const longMs = 120_000;
let place: string;
let file: string;
let placeCount = 0;
const programs: Program[] = [];

beforeEach(() => {
  placeCount += 1;
  place = join(root, `state-${String(placeCount)}`);
  file = join(root, `${String(placeCount)}.yaml`);
  write("workers: {replicas: 1, minReadySeconds: 0, terminationGracePeriodSeconds: 15}");
});
afterEach(async () => {
  for (const program of programs.splice(0)) {
    if (program.child.exitCode === null && program.child.signalCode === null) await program.interrupt();
  }
});

const write = (spec: string) => { writeFileSync(file, `apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: orders}\nspec: {${spec}}\n`); };
const args = () => ["-f", file, "--state", place];
const run = (verb: string) => runProgram("durable-timer", [verb, ...args()]);
const up = () => {
  const program = new Program("durable-timer", ["up", ...args()]);
  programs.push(program);
  return program;
};
const until = (program: Program, pattern: RegExp) => expect.poll(() => program.output, { timeout: 60_000 }).toMatch(pattern);
const isReady = /Ready +True +Serving/;

async function connect(): Promise<TimerClient> {
  const { client } = JSON.parse(readFileSync(join(place, "nats", "ports.json"), "utf8")) as { readonly client: number };
  return connectTimers({ servers: [`nats://127.0.0.1:${String(client)}`] });
}

const childPids = () => (JSON.parse(readFileSync(join(place, "processes.json"), "utf8")) as { readonly processes: readonly { readonly pid: number }[] }).processes.map(({ pid }) => pid);

const start = (timers: TimerClient, delayMs: number) => timers.start(
  { flow: { id: "orders", version: "1" }, execution: "ex-1", node: "n", edges: { start: "a", elapsed: "b" }, wait: { delayMs }, body: new Uint8Array([7]) },
  { awaitOutcome: true },
);

describe("durable-timer up", () => {
  it("opens the gates, keeps a timer over a stop and a second run, and resumes it there", { timeout: longMs }, async () => {
    const first = up();
    await until(first, isReady);
    const gates = ["BrokerReachable", "BrokerCompatible", "TopologyReady", "WorkersReady", "ResumeOpen", "Ready"];
    const opened = gates.map((gate) => first.output.search(new RegExp(`^\\S+ +${gate} +True`, "m")));
    expect(opened).toEqual([...opened].sort((a, b) => a - b));
    expect(opened[0]).toBeGreaterThan(0);

    const timers = await connect();
    expect(await start(timers, 6_000)).toMatchObject({ outcome: { kind: "accepted", state: "waiting" } });
    await timers.close();
    const pids = childPids();
    expect(pids).toHaveLength(2);
    expect(await first.interrupt()).toBe(0);
    expect(pids.map(processIdentity)).toEqual([undefined, undefined]);

    const second = up();
    await until(second, isReady);
    const again = await connect();
    const { value: delivery } = await again.resumes()[Symbol.asyncIterator]().next();
    expect(delivery?.resume).toMatchObject({ lineage: { execution: "ex-1" }, generation: 0 });
    expect([...(delivery?.resume.body ?? [])]).toEqual([7]);
    expect(delivery?.publishedAtMs).toBeGreaterThanOrEqual(delivery?.resume.dueAtMs ?? Infinity);
    delivery?.ack();
    await again.close();
    expect(await second.interrupt()).toBe(0);
  });

  it("follows edits of the file, and keeps the last good spec running after a bad one", { timeout: longMs }, async () => {
    const program = up();
    await until(program, isReady);
    write("workers: {replicas: 1, minReadySeconds: 0, terminationGracePeriodSeconds: 15}, limits: {retriesMax: 5}");
    await until(program, /worker w2: ready[\s\S]*worker w1: stopped/);
    write("workers: {replicas: many}");
    await until(program, /cannot be used:\n.*spec\.workers\.replicas must be/);
    const timers = await connect();
    expect(await start(timers, 0)).toMatchObject({ outcome: { kind: "accepted" } });
    await timers.close();
    expect(program.output.split("generation 2")).toHaveLength(2);
  });

  it("is refused while another one runs; status and plan work beside it", { timeout: longMs }, async () => {
    const program = up();
    await until(program, isReady);
    const [second, status, plan] = await Promise.all([run("up"), run("status"), run("plan")]);
    expect(second).toMatchObject({ code: 1, output: expect.stringContaining(`process ${String(program.child.pid)} runs on this state folder`) as string });
    expect(status).toMatchObject({ code: 0, output: expect.stringContaining(`running in process ${String(program.child.pid)}`) as string });
    expect(plan).toMatchObject({ code: 0, output: expect.stringMatching(/^Nothing to do\./) as string });
  });

  it("takes over after it was killed together with nothing else", { timeout: longMs }, async () => {
    const killed = up();
    await until(killed, isReady);
    const pids = childPids();
    killed.child.kill("SIGKILL");
    expect(await killed.ended()).toBe("SIGKILL");
    const next = up();
    await until(next, isReady);
    expect(next.output).toContain("left behind by an earlier run");
    expect(pids.map(processIdentity)).toEqual([undefined, undefined]);
  });

  it("ends at once at the second signal, with nothing left running", { timeout: longMs }, async () => {
    const program = up();
    await until(program, isReady);
    const pids = childPids();
    // A stopped worker cannot end in order, so that the first signal alone would wait out its grace.
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    program.child.kill("SIGINT");
    await until(program, /Stopping/);
    await new Promise((resolve) => { setTimeout(resolve, 500); });
    program.child.kill("SIGINT");
    expect(await program.ended()).toBe(1);
    await expect.poll(() => pids.map(processIdentity), { timeout: 30_000 }).toEqual([undefined, undefined]);
  });

  it("takes the echo of one Ctrl-C for what it is, and a closed terminal for a wish to stop", { timeout: longMs }, async () => {
    const program = up();
    await until(program, isReady);
    program.child.kill("SIGHUP");
    program.child.kill("SIGINT");
    expect(await program.ended()).toBe(0);
    expect(program.output).toMatch(/worker w1: stopped/);
  });

  it("does not start with a file that cannot be used, and says why", async () => {
    write("worker: {}");
    const { code, output } = await run("up");
    expect(code).toBe(2);
    expect(output).toContain("spec.worker is not a field of this resource");
  });
});

describe("durable-timer", () => {
  it("plans for a resource that never ran, and changes nothing", { timeout: 120_000 }, async () => {
    const { code, output } = await run("plan");
    expect(code).toBe(0);
    expect(output).toContain("BrokerReachable");
    expect((await run("status")).output).toContain("it has never run here");
  });

  it("checks a file, and says what is missing where there is none", async () => {
    expect(await run("validate").then(({ code }) => code)).toBe(2);
    const valid = await runProgram("durable-timer", ["validate", "-f", file]);
    expect(valid).toMatchObject({ code: 0, output: `${file}: DurableTimer orders is valid and runs with an embedded NATS server\n` });
    rmSync(file);
    expect(await runProgram("durable-timer", ["validate", "-f", file])).toMatchObject({ code: 2, output: expect.stringContaining("the file is not there") as string });
  });

  it("prints its version and refuses what it does not know", async () => {
    expect(await runProgram("durable-timer", ["version"])).toMatchObject({ code: 0, output: expect.stringMatching(/^durable-timer \d+\.\d+\.\d+\n$/) as string });
    expect(await runProgram("durable-timer", ["fly"])).toMatchObject({ code: 2, output: expect.stringContaining("unknown command 'fly'") as string });
  });
});
