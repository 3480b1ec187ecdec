/**
 * The product on the node: its image, its charts, and the resources of one namespace as a person sees them.
 *
 * 1. Everything goes through helm and kubectl, as a user would do it.
 * 2. Images come from the working tree, never from a registry.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Condition } from "../../src/resource/conditions.ts";
import { install, uninstall, type Release } from "../charts/helm.ts";
import { callApiAs } from "./api.ts";
import { clientToolPath } from "./client-tools.ts";
import { runCommand } from "./commands.ts";
import { waitUntil } from "./processes.ts";
import { PRODUCT_IMAGE } from "./product-image.ts";

/** What this file's users look at in a DurableTimer; the rest is there too. */
export type TimerResource = {
  readonly metadata: { readonly uid: string; readonly generation: number };
  readonly spec: { readonly workers: { readonly replicas: number } };
  readonly status?: {
    readonly observedGeneration: number;
    readonly conditions?: readonly Condition[];
    readonly owner?: { readonly id: string };
    readonly topology?: { readonly streams: readonly { readonly name: string; readonly incarnation: string }[] };
  };
};

export type PodObject = {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string; readonly deletionTimestamp?: string };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
};

/** The namespaces of one installation. */
export type Place = { readonly kubeconfigPath: string; readonly operatorNamespace: string; readonly namespace: string };

/** Helm and kubectl on one cluster, for the operator in one namespace and DurableTimers in another. */
export class Installation {
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  /** Installs the operator or upgrades it, and waits until it is there as Helm understands that. */
  async installOperator(values: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const images = { image: PRODUCT_IMAGE, workerImage: PRODUCT_IMAGE };
    await install(this.#place.kubeconfigPath, { ...this.#operator, values: { ...images, ...values } }, ["--wait", "--timeout=120s"]);
  }

  async uninstallOperator(): Promise<void> {
    await uninstall(this.#place.kubeconfigPath, this.#operator, UNTIL_GONE);
  }

  /** Installs the release of one DurableTimer or upgrades it, and does not wait for its gates unless `--wait` says so. */
  async installTimer(name: string, spec: object, flags: readonly string[] = []): Promise<void> {
    await install(this.#place.kubeconfigPath, this.#timerRelease(name, { spec }), flags);
  }

  async uninstallTimer(name: string): Promise<void> {
    await uninstall(this.#place.kubeconfigPath, this.#timerRelease(name), UNTIL_GONE);
  }

  /** In the namespace of the DurableTimers. */
  async kubectl(...args: readonly string[]): Promise<string> {
    const env = { KUBECONFIG: this.#place.kubeconfigPath };
    return (await runCommand(clientToolPath("kubectl"), ["--namespace", this.#place.namespace, ...args], { env })).trim();
  }

  /** Applies a manifest given as text or as an object. */
  async apply(manifest: string | object, ...flags: readonly string[]): Promise<string> {
    return await withFile(typeof manifest === "string" ? manifest : JSON.stringify(manifest), async (path) => await this.kubectl("apply", "--filename", path, ...flags));
  }

  async get<Shape>(what: string, ...flags: readonly string[]): Promise<Shape> {
    return JSON.parse(await this.kubectl("get", what, ...flags, "--output", "json")) as Shape;
  }

  async timer(name: string): Promise<TimerResource> {
    return await this.get<TimerResource>(`durabletimer/${name}`);
  }

  /** Waits until a condition has a status, and returns it. The error says what all conditions were at the end. */
  async untilCondition(name: string, wanted: Pick<Condition, "type" | "status">, timeoutMs: number): Promise<Condition> {
    let last: readonly Condition[] = [];
    const matching = (): Condition | undefined => last.find(({ type, status }) => type === wanted.type && status === wanted.status);
    const probe = async (): Promise<boolean> => {
      last = await this.#currentConditions(name);
      return matching() !== undefined;
    };
    try {
      await waitUntil({ what: `${name} is ${wanted.type}=${wanted.status}`, probe, timeoutMs });
    } catch (error) {
      const lines = last.map(({ type, status, reason, message }) => `${type}=${status} ${reason} ${message}`);
      throw new Error(`${(error as Error).message}; its conditions were:\n${lines.join("\n")}`, { cause: error });
    }
    return matching() as Condition;
  }

  /** Worker pods of a DurableTimer that are not being deleted. */
  async workerPods(name: string): Promise<readonly PodObject[]> {
    const { items } = await this.get<{ readonly items: readonly PodObject[] }>("pods", "--selector", `durabletimer.dev/name=${name}`);
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /**
   * Deletes a ready worker's pod with the shortest grace that there is, and returns its name. Without a kubectl in
   * between, which would take longer to start than a worker holds a wake.
   */
  async deleteWorker(name: string): Promise<string> {
    const { kubeconfigPath, namespace } = this.#place;
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const labelSelector = encodeURIComponent(`durabletimer.dev/name=${name}`);
    const { items } = await callApiAs<{ readonly items: readonly PodObject[] }>(kubeconfigPath, { method: "GET", path: `${pods}?labelSelector=${labelSelector}` });
    const victim = items.find(({ metadata, status }) => metadata.deletionTimestamp === undefined && isReady(status));
    if (victim === undefined) throw new Error(`${name} has no ready worker`);
    await callApiAs(kubeconfigPath, { method: "DELETE", path: `${pods}/${victim.metadata.name}?gracePeriodSeconds=0` });
    return victim.metadata.name;
  }

  /** Conditions that speak of the resource as it is now. */
  async #currentConditions(name: string): Promise<readonly Condition[]> {
    const { metadata, status } = await this.timer(name);
    return status?.observedGeneration === metadata.generation ? (status.conditions ?? []) : [];
  }

  get #operator(): Release {
    return { chart: "durable-timer-operator", name: "durable-timer-operator", namespace: this.#place.operatorNamespace };
  }

  #timerRelease(name: string, values: Release["values"] = {}): Release {
    return { chart: "durable-timer", name, namespace: this.#place.namespace, values };
  }
}

function isReady({ conditions = [] }: PodObject["status"]): boolean {
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

async function withFile<Result>(text: string, work: (path: string) => Promise<Result>): Promise<Result> {
  const dir = await mkdtemp(join(tmpdir(), "installation-"));
  try {
    const path = join(dir, "input.yaml");
    await writeFile(path, text);
    return await work(path);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const UNTIL_GONE = ["--wait", "--timeout=60s"];
