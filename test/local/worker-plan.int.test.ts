import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stopChild } from "../../src/local/child-process.ts";
import { ProcessLedger } from "../../src/local/process-ledger.ts";
import { readResourceFile } from "../../src/local/resource-file.ts";
import { readJsonFile } from "../../src/local/state-files.ts";
import { poolPlan, workersHash } from "../../src/local/worker-plan.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

const specOf = (spec: string) => {
  const file = readResourceFile(`apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: t}\nspec: {${spec}}\n`, "nats://127.0.0.1:4299");
  if (!file.ok) throw new Error(file.problems.join("; "));
  return file.manifest.spec;
};

describe("the workers of a spec", () => {
  it("have a hash that changes with what a worker is told, and with nothing else", () => {
    const hash = workersHash(specOf(""), "/s");
    expect(workersHash(specOf("workers: {replicas: 7}"), "/s")).toBe(hash);
    expect(workersHash(specOf("topology: {streams: {state: {maxBytes: 1Gi}}}"), "/s")).toBe(hash);
    expect(workersHash(specOf("limits: {retriesMax: 5}"), "/s")).not.toBe(hash);
    expect(workersHash(specOf(`nats: {servers: ["nats://other:4222"]}`), "/s")).not.toBe(hash);
  });

  it("are as many and have the times that the spec says", () => {
    const surroundings = { command: { command: "node", args: [], environment: {} }, secretsFolder: "/s", logsFolder: folder, namePrefix: "local-x", ledger: new ProcessLedger(join(folder, "unused.json")), random: systemRandom };
    const plan = poolPlan(specOf("workers: {replicas: 3, minReadySeconds: 2, terminationGracePeriodSeconds: 20, progressDeadlineSeconds: 90}"), surroundings);
    expect(plan).toMatchObject({ replicas: 3, minReadyMs: 2_000, graceMs: 20_000, progressDeadlineMs: 90_000 });
  });

  it("are started with their configuration, a name and a health port of their own, on loopback, and are written down", async () => {
    const notes = join(folder, "notes");
    mkdirSync(notes);
    const ledgerPath = join(folder, "ledger.json");
    const command = { command: process.execPath, args: [join(import.meta.dirname, "worker-program.ts")], environment: { NOTES_FOLDER: notes } };
    const { launcher } = poolPlan(specOf("workers: {maxAckPending: 77}"), { command, secretsFolder: "/s", logsFolder: join(folder, "logs"), namePrefix: "local-x", ledger: new ProcessLedger(ledgerPath), random: systemRandom });
    const workers = await Promise.all([launcher.launch("w1"), launcher.launch("w2")]);
    for (const worker of workers) await expect.poll(() => worker.isReady(), { timeout: 30_000 }).toBe(true);
    const noted = workers.map(({ pid }) => JSON.parse(readFileSync(join(notes, `${String(pid)}.json`), "utf8")) as { readonly config: { readonly healthPort: number }; readonly name: string });
    expect(noted[0]).toMatchObject({ host: "127.0.0.1", config: { lookahead: 77, nats: { servers: ["nats://127.0.0.1:4299"] } } });
    expect(noted[0]?.name).toMatch(/^local-x-w1-[a-z2-7]{6}$/);
    expect(noted[0]?.config.healthPort).not.toBe(noted[1]?.config.healthPort);
    expect(readJsonFile(ledgerPath)).toMatchObject({ processes: [{ role: "worker w1" }, { role: "worker w2" }] });
    for (const worker of workers) await stopChild(worker, { clock: systemClock, graceMs: 5_000 as Parameters<typeof stopChild>[1]["graceMs"] });
    expect(readJsonFile(ledgerPath)).toEqual({ processes: [] });
  });
});
