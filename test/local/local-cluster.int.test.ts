import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { filePollIntervalMs } from "../../src/base/limits.ts";
import type { ResourceKey } from "../../src/operator/plan/observed.ts";
import type { LocalCluster } from "../../src/local/local-cluster.ts";
import type { Condition } from "../../src/resource/conditions.ts";
import { desiredIn, Place, quickWorkers, resourceIn } from "./runs.ts";
import { tempFolder } from "./temp-folder.ts";

const root = tempFolder();

const workers = async (cluster: LocalCluster) => {
  const looked = await cluster.readWorkers(await desiredIn(cluster));
  return looked.kind === "found" ? looked.value : undefined;
};
const apply = async (cluster: LocalCluster) => expect(await cluster.applyWorkers(await desiredIn(cluster))).toEqual({ kind: "done" });
const condition = (type: string, status: "True" | "False" | "Unknown", reason: string): Condition => ({ type, status, reason, message: "", lastTransitionTime: "" });

describe("the cluster of a state folder", () => {
  it("has no workers before they are applied, then has them, without drift", async () => {
    const place = new Place(root, "apply");
    const { cluster } = await place.start();
    expect(await cluster.readWorkers(await desiredIn(cluster))).toEqual({ kind: "absent" });
    await apply(cluster);
    await expect.poll(async () => (await workers(cluster))?.readyReplicas, { timeout: 30_000 }).toBe(1);
    expect(await workers(cluster)).toMatchObject({ exists: true, drift: [], foreign: [], replicas: 1, updatedReplicas: 1, isObserved: true, hasExceededDeadline: false, problem: "" });
  });

  it("sees drift after an edit of the file, and rolls it through when asked to", async () => {
    const place = new Place(root, "roll");
    const { cluster } = await place.start();
    await apply(cluster);
    await expect.poll(async () => (await workers(cluster))?.readyReplicas, { timeout: 30_000 }).toBe(1);
    const keys: ResourceKey[] = [];
    const stop = new AbortController();
    const watching = cluster.watch({ onKey: (key) => { keys.push(key); }, signal: stop.signal });
    place.write(`workers: {replicas: 2, ${quickWorkers}}, limits: {retriesMax: 7}`);
    await expect.poll(async () => (await workers(cluster))?.drift, { timeout: 30_000 }).toEqual(["configuration", "replicas"]);
    await apply(cluster);
    await expect.poll(async () => workers(cluster), { timeout: 30_000 }).toMatchObject({ drift: [], replicas: 2, updatedReplicas: 2, readyReplicas: 2 });
    await expect.poll(() => place.notices.filter(({ kind }) => kind === "worker_stopped"), { timeout: 30_000 }).toEqual([{ kind: "worker_stopped", slot: "w1" }]);
    place.write(`workers: {replicas: 2, ${quickWorkers}, progressDeadlineSeconds: 31}, limits: {retriesMax: 7}`);
    await expect.poll(async () => (await workers(cluster))?.drift, { timeout: 30_000 }).toEqual(["progressDeadlineSeconds"]);
    await apply(cluster);
    expect((await workers(cluster))?.drift).toEqual([]);
    stop.abort();
    await watching;
    expect(keys.length).toBeGreaterThan(2);
  });

  it("tells its watcher of the resource at once, of an edit, of a rotated secret, and of a worker that dies", async () => {
    const place = new Place(root, "watch");
    const secret = join(dirname(place.filePath), "secrets", "tok", "token");
    mkdirSync(dirname(secret), { recursive: true });
    writeFileSync(secret, "a");
    place.write(`nats: {servers: ["nats://127.0.0.1:1"], auth: {tokenSecretRef: {name: tok}}}, workers: {replicas: 1, ${quickWorkers}}`);
    const run = await place.start();
    const { cluster } = run;
    let told = 0;
    const stop = new AbortController();
    const watching = cluster.watch({ onKey: () => { told += 1; }, signal: stop.signal });
    const toldAgain = async (what: string, act: () => void): Promise<void> => {
      const before = told;
      act();
      await expect.poll(() => told, { timeout: 30_000, message: what }).toBeGreaterThan(before);
    };
    await expect.poll(() => told).toBe(1);
    await new Promise((resolve) => { setTimeout(resolve, 3 * filePollIntervalMs); });
    expect(told, "an unchanged folder is nothing to tell").toBe(1);
    await toldAgain("secret", () => { writeFileSync(secret, "rotated"); });
    await toldAgain("edit", () => { place.write(`nats: {servers: ["nats://127.0.0.1:2"], auth: {tokenSecretRef: {name: tok}}}, workers: {replicas: 1, ${quickWorkers}}`); });
    await apply(cluster);
    await expect.poll(async () => (await workers(cluster))?.readyReplicas, { timeout: 30_000 }).toBe(1);
    await toldAgain("worker", () => { process.kill(run.workers()[0]?.pid ?? 0, "SIGKILL"); });
    expect(place.kinds()).toContain("worker_exited");
    stop.abort();
    await watching;
  });

  it("shows conditions when they turn, the summary last, and says nothing of what was never looked at", async () => {
    const place = new Place(root, "conditions");
    const { cluster } = await place.start();
    const write = async (...conditions: Condition[]) => cluster.writeStatus(await resourceIn(cluster), { observedGeneration: 1, conditions });
    const turned = () => place.notices.flatMap((notice) => (notice.kind === "condition_turned" ? [`${notice.condition.type} ${notice.condition.status} ${notice.condition.reason}`] : []));
    await write(condition("Ready", "Unknown", "NotObserved"), condition("TopologyReady", "Unknown", "NotObserved"));
    expect(turned()).toEqual([]);
    await write(condition("Ready", "False", "Provisioning"), condition("TopologyReady", "False", "Provisioning"));
    await write(condition("Ready", "True", "Serving"), condition("TopologyReady", "True", "Provisioned"));
    await write(condition("Ready", "True", "Serving"), condition("TopologyReady", "True", "Provisioned"));
    expect(turned()).toEqual(["TopologyReady False Provisioning", "Ready False Provisioning", "TopologyReady True Provisioned", "Ready True Serving"]);
    expect(await cluster.writeStatus({ ...(await resourceIn(cluster)), resourceVersion: "0" }, { observedGeneration: 1 })).toMatchObject({ kind: "failed", failure: { kind: "conflict" } });
  });

  it("stops the workers of a resource that is gone", async () => {
    const place = new Place(root, "remove");
    const { cluster } = await place.start();
    await apply(cluster);
    await expect.poll(async () => (await workers(cluster))?.readyReplicas, { timeout: 30_000 }).toBe(1);
    expect(await cluster.removeWorkers()).toEqual({ kind: "done" });
    expect(await cluster.readWorkers(await desiredIn(cluster))).toEqual({ kind: "absent" });
    expect(place.kinds().at(-1)).toBe("worker_stopped");
  });
});
