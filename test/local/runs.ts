// Runs of local mode with a stand-in for the worker program.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { ObservedResource } from "../../src/operator/plan/observed.ts";
import type { LocalCluster } from "../../src/local/local-cluster.ts";
import { startLocal, type LocalNotice, type LocalOptions, type LocalRun } from "../../src/local/local-run.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { serverBinary } from "../servers.ts";

export const workerProgram = { command: process.execPath, args: [join(import.meta.dirname, "worker-program.ts")], environment: {} };

/** Spec whose workers are ready at once and stop quickly. */
export const quickWorkers = "minReadySeconds: 0, terminationGracePeriodSeconds: 15";

export const ownerId = "cluster/local/orders";

/** A folder with a resource's file in it. */
export class Place {
  readonly filePath: string;
  readonly notices: LocalNotice[] = [];
  readonly #runs: LocalRun[] = [];

  constructor(root: string, name: string) {
    mkdirSync(join(root, name), { recursive: true });
    this.filePath = join(root, name, "durabletimer.yaml");
    this.write(`workers: {replicas: 1, ${quickWorkers}}`);
    onTestFinished(() => this.stop());
  }

  write(spec: string, name = "orders"): void {
    writeFileSync(this.filePath, `apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: ${name}}\nspec: {${spec}}\n`);
  }

  start(options: Partial<LocalOptions> = {}): Promise<LocalRun> {
    return this.startWithoutServer({ serverProgram: serverBinary("recommended"), ...options });
  }

  /** On a machine that has no nats-server. */
  async startWithoutServer(options: Partial<LocalOptions> = {}): Promise<LocalRun> {
    const run = await startLocal({
      filePath: this.filePath, worker: workerProgram, clock: systemClock, random: systemRandom, onNotice: (notice) => { this.notices.push(notice); }, ...options,
    });
    this.#runs.push(run);
    return run;
  }

  kinds(): readonly string[] {
    return this.notices.map(({ kind }) => kind);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#runs.splice(0).map((run) => run.stop()));
  }
}

/** The resource that a cluster has under this name. */
export async function resourceIn(cluster: LocalCluster, name = "orders"): Promise<ObservedResource> {
  const read = await cluster.readResource({ namespace: "local", name });
  if (read.kind !== "found") throw new Error(`no resource ${name}`);
  return read.resource;
}

/** What the operator would ask for. */
export async function desiredIn(cluster: LocalCluster) {
  const { key, uid, spec } = await resourceIn(cluster);
  return { key, uid, spec, ownerId };
}
