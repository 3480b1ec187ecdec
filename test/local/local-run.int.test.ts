import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { processIdentity } from "../../src/local/process-identity.ts";
import { lookAtLocal } from "../../src/local/local-run.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { desiredIn, Place, quickWorkers, resourceIn } from "./runs.ts";
import { tempFolder } from "./temp-folder.ts";

const root = tempFolder();
const look = (place: Place) => lookAtLocal({ filePath: place.filePath, clock: systemClock, random: systemRandom, onNotice: () => undefined });

describe("a run of local mode", () => {
  it("keeps its identity, its resource and its server's address in the folder beside the file", async () => {
    const place = new Place(root, "keep");
    const first = await place.start();
    expect(first.stateFolder).toBe(join(dirname(place.filePath), ".durable-timer"));
    const before = { id: first.cluster.clusterId(), servers: first.servers(), resource: await resourceIn(first.cluster) };
    await place.stop();
    const second = await place.start();
    expect({ id: second.cluster.clusterId(), servers: second.servers(), resource: await resourceIn(second.cluster) }).toEqual(before);
  });

  it("is refused while another one uses the folder, and possible with a folder of its own", async () => {
    const place = new Place(root, "twice");
    await place.start();
    await expect(place.start()).rejects.toMatchObject({ code: "STATE_LOCKED" });
    const other = await place.start({ statePath: join(root, "elsewhere") });
    expect(other.stateFolder).toBe(join(root, "elsewhere"));
  });

  it("with a file that cannot be used tells the problems, starts nothing and frees the folder", async () => {
    const place = new Place(root, "bad");
    place.write("worker: {}");
    await expect(place.start()).rejects.toMatchObject({ code: "RESOURCE_INVALID" });
    expect(place.notices).toEqual([{ kind: "file_refused", path: place.filePath, problems: ["spec.worker is not a field of this resource"] }]);
    place.write("");
    await place.start();
  });

  it("without a nats-server says what to do, and needs none when the file names servers", async () => {
    const place = new Place(root, "none");
    await expect(place.startWithoutServer()).rejects.toMatchObject({ code: "PROCESS_FAILED", message: expect.stringContaining("set DURABLE_TIMER_NATS_SERVER to its path") as string });
    await expect(place.start({ serverProgram: join(root, "no-such-server") })).rejects.toMatchObject({ code: "PROCESS_FAILED" });
    place.write(`nats: {servers: ["nats://127.0.0.1:1"]}`);
    const run = await place.startWithoutServer();
    expect(run.servers()).toEqual(["nats://127.0.0.1:1"]);
    expect(place.kinds()).not.toContain("server_ready");
  });

  it("starts its server later when an edit takes the servers away", async () => {
    const place = new Place(root, "later");
    place.write(`nats: {servers: ["nats://127.0.0.1:1"]}`);
    const run = await place.start();
    place.write("");
    const stop = new AbortController();
    const watching = run.cluster.watch({ onKey: () => undefined, signal: stop.signal });
    await expect.poll(() => place.kinds(), { timeout: 30_000 }).toContain("server_ready");
    stop.abort();
    await watching;
  });

  it("stops workers and server, and leaves no process and no lock behind", async () => {
    const place = new Place(root, "stop");
    const run = await place.start();
    await run.cluster.applyWorkers(await desiredIn(run.cluster));
    await expect.poll(() => run.workers().some(({ isReady }) => isReady), { timeout: 30_000 }).toBe(true);
    const pids = place.notices.flatMap((notice) => ("pid" in notice ? [notice.pid] : []));
    await run.stop();
    expect(pids.map(processIdentity)).toEqual(pids.map(() => undefined));
    expect(existsSync(join(run.stateFolder, "lock"))).toBe(false);
    expect(place.kinds().at(-1)).toBe("worker_stopped");
  });

  it("ends what a killed run left behind before it starts its own", async () => {
    const place = new Place(root, "leftovers");
    const killed = await place.start();
    await killed.cluster.applyWorkers(await desiredIn(killed.cluster));
    await expect.poll(() => killed.workers().some(({ isReady }) => isReady), { timeout: 30_000 }).toBe(true);
    const pids = place.notices.flatMap((notice) => ("pid" in notice && notice.kind !== "worker_ready" ? [notice.pid] : []));
    // Stands for SIGKILL: the lock is gone with its holder, and nobody stopped the children.
    rmSync(join(killed.stateFolder, "lock"));
    const ledger = readFileSync(join(killed.stateFolder, "processes.json"), "utf8");
    expect(JSON.parse(ledger)).toMatchObject({ processes: [{ role: "nats-server" }, { role: "worker w1" }] });
    const next = await place.start();
    expect(place.notices.filter(({ kind }) => kind === "leftover_stopped")).toEqual([
      { kind: "leftover_stopped", role: "worker w1", pid: pids[1] },
      { kind: "leftover_stopped", role: "nats-server", pid: pids[0] },
    ]);
    expect(next.servers()).toEqual(killed.servers());
  });

  it("can be looked at from outside, and cannot be changed that way", async () => {
    const place = new Place(root, "look");
    expect(look(place)).not.toHaveProperty("holder");
    const run = await place.start();
    await run.cluster.applyWorkers(await desiredIn(run.cluster));
    await expect.poll(() => run.workers().some(({ isReady }) => isReady), { timeout: 30_000 }).toBe(true);
    const { cluster, holder } = look(place);
    expect(holder).toBe(process.pid);
    expect(cluster.clusterId()).toBe(run.cluster.clusterId());
    expect(await resourceIn(cluster)).toEqual(await resourceIn(run.cluster));
    const desired = await desiredIn(cluster);
    expect(await cluster.readWorkers(desired)).toEqual(await run.cluster.readWorkers(desired));
    expect(await cluster.applyWorkers(desired)).toMatchObject({ kind: "failed", failure: { kind: "denied" } });
    expect(await cluster.writeStatus(await resourceIn(cluster), { observedGeneration: 1 })).toMatchObject({ kind: "failed", failure: { kind: "denied" } });
    expect(await cluster.removeWorkers()).toMatchObject({ kind: "failed", failure: { kind: "denied" } });
  });

  it("starts a worker again that dies", async () => {
    const place = new Place(root, "restart");
    place.write(`workers: {replicas: 2, ${quickWorkers}}`);
    const run = await place.start();
    await run.cluster.applyWorkers(await desiredIn(run.cluster));
    const readyPids = () => run.workers().filter(({ isReady }) => isReady).map(({ pid }) => pid);
    await expect.poll(() => readyPids().length, { timeout: 30_000 }).toBe(2);
    const [first, second] = readyPids();
    process.kill(first ?? 0, "SIGKILL");
    await expect.poll(() => readyPids().filter((pid) => pid !== first).length, { timeout: 30_000 }).toBe(2);
    expect(readyPids()).toContain(second);
  });
});
