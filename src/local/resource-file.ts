/**
 * The resource file of local mode: one DurableTimer in YAML, in the shape that a cluster takes too. What only a cluster
 * needs may be left out: without servers an embedded one is used, and sizes have defaults that suit a laptop.
 *
 * Reading never throws and never guesses: every problem names the field or the line, and what to write instead.
 */
import { isScalar, parseAllDocuments, type Document } from "yaml";
import { utf8 } from "../base/bytes.ts";
import { resourceFileBytesMax } from "../base/limits.ts";
import { parseManifest, type Manifest } from "../resource/validate.ts";
import { describeProblem, type Problem } from "../resource/problems.ts";
import { readTextFile } from "./state-files.ts";

/** A file that was read. `usesEmbeddedServer` is true when it names no servers. */
export type ResourceFile =
  | { readonly ok: true; readonly manifest: Manifest; readonly usesEmbeddedServer: boolean }
  /** Each line names the field and the remedy. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** Reads a file for checking only. */
export function checkResourceFile(path: string): ResourceFile {
  const text = readTextFile(path);
  return text === undefined ? { ok: false, problems: [fileMissing] } : readResourceFile(text, "nats://127.0.0.1:4222");
}

/** The problem of a file that does not exist. */
export const fileMissing = "the file is not there: write it, or name another one with -f";

/** Reads the text of a file. `embeddedUrl` stands in for servers that the file does not name. */
export function readResourceFile(text: string, embeddedUrl: string): ResourceFile {
  if (utf8(text).length > resourceFileBytesMax) return refused([`the file is larger than ${String(resourceFileBytesMax)} bytes`]);
  const documents = parseAllDocuments(text, { prettyErrors: true, uniqueKeys: true, merge: false, version: "1.2" });
  const present = ("empty" in documents ? [] : documents).filter((document) => document.errors.length > 0 || !isEmpty(document));
  const [document] = present;
  if (document === undefined) return refused(["the file is empty: write one DurableTimer, with apiVersion, kind, metadata and spec"]);
  if (present.length > 1) return refused([`the file holds ${String(present.length)} documents: local mode runs one DurableTimer per file`]);
  return readDocument(document, embeddedUrl);
}

function readDocument(document: Document.Parsed, embeddedUrl: string): ResourceFile {
  if (document.errors.length > 0) return refused(document.errors.map(({ message }) => firstLine(message)));
  const read = toValue(document);
  if (!read.ok) return refused([read.problem]);
  const servers = objectAt(read.value, ["spec", "nats"])?.["servers"];
  const usesEmbeddedServer = servers === undefined || (Array.isArray(servers) && servers.length === 0);
  const parsed = parseManifest(withLocalDefaults(read.value, usesEmbeddedServer ? embeddedUrl : undefined));
  if (!parsed.ok) return refused(parsed.problems.map(describeInFile));
  const conflicts = usesEmbeddedServer ? embeddedConflicts(parsed.manifest) : [];
  if (conflicts.length > 0) return refused(conflicts.map(describeProblem));
  return { ok: true, manifest: parsed.manifest, usesEmbeddedServer };
}

/** Aliases are bounded by the parser: a small file cannot become a large value. */
function toValue(document: Document.Parsed): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string } {
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: 100 }) };
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? firstLine(error.message) : String(error) };
  }
}

/** Fills in what local mode may leave out; everything else stays as written, for the schema to judge. */
function withLocalDefaults(value: unknown, embeddedUrl: string | undefined): unknown {
  if (!isObject(value)) return value;
  const spec = value["spec"] ?? {};
  if (!isObject(spec)) return value;
  const nats = spec["nats"] ?? {};
  return {
    ...value,
    spec: {
      ...spec,
      nats: embeddedUrl === undefined || !isObject(nats) ? nats : { ...nats, servers: [embeddedUrl] },
      topology: withTopology(spec["topology"] ?? {}),
    },
  };
}

function withTopology(topology: unknown): unknown {
  if (!isObject(topology)) return topology;
  return { ...topology, replicas: topology["replicas"] ?? 1, streams: withSizes(topology["streams"] ?? {}) };
}

function withSizes(streams: unknown): unknown {
  if (!isObject(streams)) return streams;
  const roles = ["state", "commands", "feedback", "snapshots", "terminals", "resumes"];
  return { ...streams, ...Object.fromEntries(roles.map((role) => [role, streams[role] ?? { maxBytes: localStreamSize }])) };
}

const localStreamSize = "256Mi";

/** What a server of one's own has and the embedded one has not. */
function embeddedConflicts({ spec }: Manifest): readonly Problem[] {
  const needsServers = "needs spec.nats.servers: the embedded server has none";
  return [
    ...(spec.nats.auth === undefined ? [] : [{ field: "spec.nats.auth", problem: needsServers }]),
    ...(spec.workers.auth === undefined ? [] : [{ field: "spec.workers.auth", problem: needsServers }]),
    ...(spec.nats.tls === undefined ? [] : [{ field: "spec.nats.tls", problem: needsServers }]),
    ...(spec.nats.jetStreamDomain === undefined ? [] : [{ field: "spec.nats.jetStreamDomain", problem: needsServers }]),
    ...(spec.topology.replicas === 1 ? [] : [{ field: "spec.topology.replicas", problem: "must be 1 without spec.nats.servers: the embedded server is a single one" }]),
  ];
}

function objectAt(value: unknown, path: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  const found = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), value);
  return isObject(found) ? found : undefined;
}

function isEmpty({ contents }: Document.Parsed): boolean {
  return contents === null || (isScalar(contents) && contents.value === null);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describeInFile(problem: Problem): string {
  return problem.field === "" ? `the file ${problem.problem}` : describeProblem(problem);
}

function refused(problems: readonly string[]): ResourceFile {
  return { ok: false, problems };
}

function firstLine(message: string): string {
  return message.split("\n")[0]?.replace(/:$/, "") ?? "";
}
