import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { ObservedResource } from "../../src/operator/plan/observed.ts";
import { LocalResource, type FileNotice } from "../../src/local/local-resource.ts";
import type { DurableTimerStatus } from "../../src/resource/durable-timer.ts";
import { systemRandom } from "../../src/system/random.ts";
import { tempFolder } from "./temp-folder.ts";

const root = tempFolder();
let folder: string;
let filePath: string;
let notices: FileNotice[];
let fileCount = 0;

beforeEach(() => {
  fileCount += 1;
  folder = join(root, String(fileCount));
  filePath = join(root, `${String(fileCount)}.yaml`);
  notices = [];
  write("workers: {replicas: 2}");
});

const write = (spec: string, name = "orders", more = "") => {
  writeFileSync(filePath, `apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: ${name}${more}}\nspec: {${spec}}\n`);
};
const open = (canWrite = true) => new LocalResource({
  filePath, stateFolder: folder, embeddedUrl: "nats://127.0.0.1:4299", random: systemRandom, canWrite, onNotice: (notice) => { notices.push(notice); },
});
const opened = () => {
  const resource = open();
  resource.refresh();
  return resource;
};
const found = (resource: LocalResource): ObservedResource => {
  const read = resource.key === undefined ? undefined : resource.read(resource.key);
  if (read?.kind !== "found") throw new Error("no resource");
  return read.resource;
};
const status = (observedGeneration: number): DurableTimerStatus => ({ observedGeneration, conditions: [] });

describe("the resource of a file", () => {
  it("has a uid and generation 1 when it is seen first, in the namespace local", () => {
    const resource = opened();
    expect(found(resource)).toMatchObject({ key: { namespace: "local", name: "orders" }, generation: 1, isDeletionRequested: false, spec: { workers: { replicas: 2 } } });
    expect(found(resource).uid).toMatch(/^[a-z2-7]{26}$/);
    expect(found(resource)).not.toHaveProperty("status");
    expect(resource.read({ namespace: "local", name: "other" })).toEqual({ kind: "absent" });
    expect(resource.read({ namespace: "other", name: "orders" })).toEqual({ kind: "absent" });
  });

  it("keeps uid, generation and status over runs", () => {
    const first = opened();
    first.writeStatus(found(first), status(1));
    const second = opened();
    expect(found(second)).toEqual(found(first));
    expect(found(second).status).toEqual(status(1));
  });

  const edits = [
    { name: "a comment", edit: () => { writeFileSync(filePath, `# hello\napiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: orders}\nspec: {workers: {replicas: 2}}\n`); }, generation: 1 },
    { name: "a default that is written out", edit: () => { write("workers: {replicas: 2, minReadySeconds: 5}"); }, generation: 1 },
    { name: "an annotation", edit: () => { write("workers: {replicas: 2}", "orders", ", annotations: {durabletimer.dev/paused: 'true'}"); }, generation: 1 },
    { name: "another value", edit: () => { write("workers: {replicas: 3}"); }, generation: 2 },
  ];
  it.each(edits)("has generation $generation after $name", ({ edit, generation }) => {
    const resource = opened();
    edit();
    expect(resource.refresh()).toEqual([{ namespace: "local", name: "orders" }]);
    expect(found(resource).generation).toBe(generation);
    expect(resource.refresh()).toEqual([]);
    expect(found(opened()).generation).toBe(generation);
  });

  it("shows annotations, which pause the operator", () => {
    write("", "orders", ", annotations: {durabletimer.dev/paused: 'true'}");
    expect(found(opened()).annotations).toEqual({ "durabletimer.dev/paused": "true" });
  });

  const bad = [
    { name: "broken YAML", edit: () => { writeFileSync(filePath, "a: [1"); }, problem: "line" },
    { name: "a misspelt field", edit: () => { write("worker: {}"); }, problem: "spec.worker is not a field of this resource" },
    { name: "a change of what cannot change", edit: () => { write(`nats: {servers: ["nats://a:1"], jetStreamDomain: hub}`); }, problem: "spec.nats.jetStreamDomain cannot be added" },
    { name: "no file", edit: () => { rmSync(filePath); }, problem: "the file is not there" },
  ];
  it.each(bad)("stays as it was while the file holds $name, which is told once", ({ edit, problem }) => {
    const resource = opened();
    const before = found(resource);
    edit();
    expect([resource.refresh(), resource.refresh()]).toEqual([[], []]);
    expect(found(resource)).toEqual(before);
    const refused = notices.filter(({ kind }) => kind === "file_refused");
    expect(refused).toEqual([{ kind: "file_refused", path: filePath, problems: [expect.stringContaining(problem)] }]);
    write("workers: {replicas: 4}");
    resource.refresh();
    expect(found(resource)).toMatchObject({ generation: 2, spec: { workers: { replicas: 4 } } });
  });

  it("refuses a status for a version that is no longer the last, or for another resource", () => {
    const resource = opened();
    const read = found(resource);
    expect(resource.writeStatus(read, status(1))).toEqual({ kind: "done" });
    expect(resource.writeStatus(read, status(2))).toMatchObject({ kind: "failed", failure: { kind: "conflict", code: "CLUSTER_CONFLICT" } });
    expect(resource.writeStatus({ ...found(resource), uid: "other" }, status(2))).toMatchObject({ kind: "failed", failure: { code: "CLUSTER_MISSING" } });
    expect(found(resource).status).toEqual(status(1));
  });

  it("does not store a status that is stored already", () => {
    const resource = opened();
    resource.writeStatus(found(resource), status(1));
    const { resourceVersion } = found(resource);
    expect(resource.writeStatus(found(resource), status(1))).toEqual({ kind: "done" });
    expect(found(resource).resourceVersion).toBe(resourceVersion);
  });

  it("that gets another name is another one; the first is gone, and is itself again when the name comes back", () => {
    const resource = opened();
    const first = found(resource);
    write("", "invoices");
    expect(resource.refresh().map(({ name }) => name)).toEqual(["orders", "invoices"]);
    expect(resource.read(first.key)).toEqual({ kind: "absent" });
    expect(found(resource).uid).not.toBe(first.uid);
    write("workers: {replicas: 2}");
    resource.refresh();
    expect(found(resource)).toEqual(first);
  });

  it("writes nothing when it is only looked at", () => {
    const resource = open(false);
    resource.refresh();
    expect(found(resource).generation).toBe(1);
    expect(found(opened()).uid).not.toBe(found(resource).uid);
  });

  it("whose stored form is damaged is refused with the file named", () => {
    opened();
    writeFileSync(join(folder, "resources", "orders.json"), '{"uid": 1}');
    expect(() => opened()).toThrow(expect.objectContaining({ code: "STATE_DAMAGED" }));
  });
});
