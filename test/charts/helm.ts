// Runs the bed's helm and kubectl on the charts of this repository. Rendering needs no cluster, installing does.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { clientToolPath } from "../cluster/client-tools.ts";
import { runCommand } from "../cluster/commands.ts";
import { chartPath } from "../cluster/paths.ts";

export type ChartName = "durable-timer-operator" | "durable-timer";
export type Values = Readonly<Record<string, unknown>>;

/** An object as a manifest has it; tests look into the rest as they need. */
export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
};

/** Where a chart is rendered or installed. */
export type Release = { readonly chart: ChartName; readonly name: string; readonly namespace: string; readonly values?: Values };

/** The objects that a release would create, in the order of the templates. */
export async function render(release: Release): Promise<readonly Manifest[]> {
  return parseObjects(await withValues(release, async (flags) => await runCommand(clientToolPath("helm"), ["template", release.name, ...flags])));
}

/** Installs or upgrades, as `helm upgrade --install` does, and returns the notes that a person sees. */
export async function install(kubeconfigPath: string, release: Release, flags: readonly string[] = []): Promise<string> {
  return await withValues(release, async (own) => {
    const args = ["upgrade", "--install", release.name, ...own, "--create-namespace", ...flags];
    return await runCommand(clientToolPath("helm"), args, { env: { KUBECONFIG: kubeconfigPath } });
  });
}

/** Uninstalls and returns what helm said. */
export async function uninstall(kubeconfigPath: string, { name, namespace }: Release, flags: readonly string[] = []): Promise<string> {
  const args = ["uninstall", name, "--namespace", namespace, ...flags];
  return await runCommand(clientToolPath("helm"), args, { env: { KUBECONFIG: kubeconfigPath } });
}

/** What a refused command said. Fails when it is not refused. */
export async function refusal(command: Promise<unknown>): Promise<string> {
  try {
    await command;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it was accepted");
}

/** `<kind> <namespace>/<name>` of each object, sorted: a list that a person can compare. */
export function inventory(objects: readonly Manifest[]): readonly string[] {
  return objects.map(({ kind, metadata: { name, namespace } }) => `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`).sort();
}

async function withValues<Result>(release: Release, work: (flags: readonly string[]) => Promise<Result>): Promise<Result> {
  const dir = await mkdtemp(join(tmpdir(), "chart-"));
  try {
    const valuesPath = join(dir, "values.json");
    await writeFile(valuesPath, JSON.stringify(release.values ?? {}));
    return await work([chartPath(release.chart), "--namespace", release.namespace, "--values", valuesPath]);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function parseObjects(text: string): readonly Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    const value = document.toJS() as Manifest | null;
    return value === null ? [] : [value];
  });
}
