/**
 * The resource of local mode: what the file says, and what Kubernetes would keep beside it (uid, generation, status), in
 * the state folder.
 *
 * F1 A file that cannot be used changes nothing: the last good spec stays in force, and the problems are told once.
 * F2 The generation grows exactly when the meaning of the spec changes; comments and spelling change nothing.
 * F3 Every stored change has a new resource version, and a status written for an older one is refused.
 * F4 The namespace is always `local`: a state folder is a cluster of its own.
 */
import { isDeepStrictEqual } from "node:util";
import { join } from "node:path";
import { Failure } from "../base/failure.ts";
import type { Random } from "../base/random.ts";
import type { ObservedResource, ResourceKey } from "../operator/plan/observed.ts";
import type { Done, ReadResource } from "../operator/ports.ts";
import type { DurableTimerSpec, DurableTimerStatus } from "../resource/durable-timer.ts";
import { describeProblem } from "../resource/problems.ts";
import { immutableChanges } from "../resource/rules.ts";
import { statusSchema } from "../resource/status.ts";
import { parseSpec, type Manifest } from "../resource/validate.ts";
import { fileMissing, readResourceFile, type ResourceFile } from "./resource-file.ts";
import { damaged, readJsonFile, readTextFile, writeJsonFile } from "./state-files.ts";

/** What the file of the resource did. */
export type FileNotice =
  | { readonly kind: "file_refused"; readonly path: string; readonly problems: readonly string[] }
  | { readonly kind: "file_accepted"; readonly path: string; readonly generation: number };

export type LocalResourceOptions = {
  readonly filePath: string;
  readonly stateFolder: string;
  /** Stands in for servers that the file does not name. */
  readonly embeddedUrl: string;
  readonly random: Random;
  /** False for looking only: nothing is written. */
  readonly canWrite: boolean;
  readonly onNotice: (notice: FileNotice) => void;
};

/** What is stored per resource. */
type Stored = {
  readonly uid: string;
  readonly generation: number;
  readonly resourceVersion: number;
  readonly spec: DurableTimerSpec;
  readonly annotations: Readonly<Record<string, string>>;
  readonly status?: DurableTimerStatus;
};

type Current = { readonly name: string; readonly stored: Stored };

/** The resource of one file, with what the state folder remembers of it. */
export class LocalResource {
  readonly #options: LocalResourceOptions;
  #text: string | undefined;
  #current: Current | undefined;

  constructor(options: LocalResourceOptions) {
    this.#options = options;
  }

  /** The key of the resource in force; undefined before a good file was seen. */
  get key(): ResourceKey | undefined {
    return this.#current === undefined ? undefined : { namespace: localNamespace, name: this.#current.name };
  }

  get spec(): DurableTimerSpec | undefined {
    return this.#current?.stored.spec;
  }

  /** Looks at the file. Returns the keys whose resource changed; none when the file says what it said. */
  refresh(): readonly ResourceKey[] {
    const text = this.#readText();
    if (text === this.#text) return [];
    this.#text = text;
    const file: ResourceFile = text === undefined
      ? { ok: false, problems: [fileMissing] }
      : readResourceFile(text, this.#options.embeddedUrl);
    return file.ok ? this.#accept(file.manifest) : this.#refuse(file.problems);
  }

  read(key: ResourceKey): ReadResource {
    if (this.#current === undefined || key.namespace !== localNamespace || key.name !== this.#current.name) return { kind: "absent" };
    return { kind: "found", resource: observedResource(this.#current) };
  }

  writeStatus(resource: Pick<ObservedResource, "key" | "uid" | "resourceVersion">, status: DurableTimerStatus): Done {
    const current = this.#current;
    const what = `write the status of ${resource.key.name}`;
    if (current?.name !== resource.key.name || current.stored.uid !== resource.uid) {
      return { kind: "failed", failure: new Failure("conflict", "CLUSTER_MISSING", what) };
    }
    if (String(current.stored.resourceVersion) !== resource.resourceVersion) {
      return { kind: "failed", failure: new Failure("conflict", "CLUSTER_CONFLICT", what) };
    }
    if (!isDeepStrictEqual(current.stored.status, status)) this.#store({ name: current.name, stored: { ...current.stored, status } });
    return { kind: "done" };
  }

  #accept(manifest: Manifest): readonly ResourceKey[] {
    const { name, spec, annotations } = manifest;
    const previous = this.#current;
    const known = previous?.name === name ? previous.stored : readStored(this.#storedPath(name));
    const refused = known === undefined ? [] : immutableChanges(known.spec, spec);
    if (refused.length > 0) return this.#refuse(refused.map(describeProblem));
    if (known === undefined) this.#store({ name, stored: { uid: this.#options.random.token(26), generation: 1, resourceVersion: 0, spec, annotations } });
    else this.#revise({ name, stored: known }, manifest);
    this.#options.onNotice({ kind: "file_accepted", path: this.#options.filePath, generation: this.#current?.stored.generation ?? 0 });
    const gone = previous === undefined || previous.name === name ? [] : [previous.name];
    return [...gone, name].map((each) => ({ namespace: localNamespace, name: each }));
  }

  /** F2. */
  #revise({ name, stored }: Current, { spec, annotations }: Manifest): void {
    const hasNewSpec = !isDeepStrictEqual(stored.spec, spec);
    const isUnchanged = !hasNewSpec && isDeepStrictEqual(stored.annotations, annotations);
    if (isUnchanged) this.#current = { name, stored };
    else this.#store({ name, stored: { ...stored, spec, annotations, generation: stored.generation + (hasNewSpec ? 1 : 0) } });
  }

  /** F1. */
  #refuse(problems: readonly string[]): readonly ResourceKey[] {
    this.#options.onNotice({ kind: "file_refused", path: this.#options.filePath, problems });
    return [];
  }

  #store({ name, stored }: Current): void {
    const next = { ...stored, resourceVersion: stored.resourceVersion + 1 };
    if (this.#options.canWrite) writeJsonFile(this.#storedPath(name), next);
    this.#current = { name, stored: next };
  }

  #storedPath(name: string): string {
    return join(this.#options.stateFolder, "resources", `${name}.json`);
  }

  #readText(): string | undefined {
    return readTextFile(this.#options.filePath);
  }
}

/** F4. */
export const localNamespace = "local";

function observedResource({ name, stored }: Current): ObservedResource {
  const { uid, generation, resourceVersion, spec, annotations, status } = stored;
  return {
    key: { namespace: localNamespace, name }, uid, generation, resourceVersion: String(resourceVersion),
    isDeletionRequested: false, annotations, spec, ...(status === undefined ? {} : { status }),
  };
}

/** What an earlier run stored, with the defaults that this version has added since. */
function readStored(path: string): Stored | undefined {
  const value = readJsonFile(path);
  if (value === undefined) return undefined;
  const { uid, generation, resourceVersion, annotations, spec, status } = (value ?? {}) as Partial<Stored>;
  if (typeof uid !== "string" || typeof generation !== "number" || typeof resourceVersion !== "number") throw damaged(path, "a field is missing");
  const parsed = parseSpec(spec);
  if (!parsed.ok) throw damaged(path, parsed.problems.map(describeProblem).join("; "));
  return { uid, generation, resourceVersion, spec: parsed.spec, annotations: annotations ?? {}, ...readStatus(path, status) };
}

function readStatus(path: string, status: unknown): Pick<Stored, "status"> {
  if (status === undefined) return {};
  const parsed = statusSchema.safeParse(status);
  if (!parsed.success) throw damaged(path, parsed.error);
  return { status: parsed.data };
}
