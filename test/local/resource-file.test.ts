import { describe, expect, it } from "vitest";
import { resourceFileBytesMax } from "../../src/base/limits.ts";
import { readResourceFile } from "../../src/local/resource-file.ts";

const embeddedUrl = "nats://127.0.0.1:4299";
const head = "apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: orders}\n";
const read = (text: string) => readResourceFile(text, embeddedUrl);
const specOf = (text: string) => {
  const file = read(text);
  if (!file.ok) throw new Error(file.problems.join("; "));
  return file.manifest.spec;
};

describe("readResourceFile", () => {
  it("takes a file that names nothing but the resource: embedded server, one replica, sizes for a laptop", () => {
    expect(read(head)).toMatchObject({
      ok: true,
      usesEmbeddedServer: true,
      manifest: { name: "orders", spec: { nats: { servers: [embeddedUrl] }, topology: { replicas: 1, streams: { state: { maxBytes: 2 ** 28 }, resumes: { maxBytes: 2 ** 28 } } } } },
    });
  });

  it("keeps what is written, and fills in only what is left out", () => {
    const spec = specOf(`${head}spec:\n  nats: {servers: ["nats://a:4222"], jetStreamDomain: hub}\n  topology: {replicas: 3, streams: {state: {maxBytes: 1Gi}}}\n  workers: {replicas: 5}\n`);
    expect(spec).toMatchObject({ nats: { servers: ["nats://a:4222"], jetStreamDomain: "hub" }, topology: { replicas: 3, streams: { state: { maxBytes: 2 ** 30 }, commands: { maxBytes: 2 ** 28 } } }, workers: { replicas: 5 } });
  });

  it("uses the embedded server for an empty list of servers, and keeps the rest of spec.nats", () => {
    expect(specOf(`${head}spec: {nats: {servers: [], replyPrefix: _INBOX.mine}}`).nats).toEqual({ servers: [embeddedUrl], replyPrefix: "_INBOX.mine" });
  });

  it("ignores empty documents around the resource", () => {
    expect(read(`---\n# a comment\n---\n${head}---\n`)).toMatchObject({ ok: true });
  });

  const bad = [
    { name: "an empty file", text: "# nothing\n", problem: "the file is empty" },
    { name: "two resources", text: `${head}---\n${head}`, problem: "the file holds 2 documents" },
    { name: "a file that is no object", text: "hello", problem: "the file must be an object" },
    { name: "broken YAML", text: `${head}spec: {workers: {replicas: 2}\n`, problem: "at line 5, column 1" },
    { name: "a key given twice", text: `${head}spec: {}\nspec: {}\n`, problem: "Map keys must be unique at line 5, column 1" },
    { name: "a file that grows by its aliases", text: `${head}spec: {a: &a [1,1,1,1,1,1,1,1,1], b: &b [*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b], d: [*c,*c,*c,*c,*c,*c,*c]}`, problem: "Excessive alias count" },
    { name: "another kind", text: head.replace("kind: DurableTimer", "kind: Deployment"), problem: "kind must be one of DurableTimer" },
    { name: "a missing name", text: head.replace("{name: orders}", "{}"), problem: "metadata.name is required" },
    { name: "a wrong kind of value", text: `${head}spec: {workers: {replicas: two}}`, problem: "spec.workers.replicas must be" },
    { name: "a section that is no object", text: `${head}spec: {nats: 5}`, problem: "spec.nats must be an object" },
    { name: "a misspelt field", text: `${head}spec: {worker: {replicas: 2}}`, problem: "spec.worker is not a field of this resource" },
    { name: "credentials without servers", text: `${head}spec: {nats: {auth: {tokenSecretRef: {name: t}}}}`, problem: "spec.nats.auth needs spec.nats.servers" },
    { name: "a domain without servers", text: `${head}spec: {nats: {jetStreamDomain: hub}}`, problem: "spec.nats.jetStreamDomain needs spec.nats.servers" },
    { name: "three replicas without servers", text: `${head}spec: {topology: {replicas: 3}}`, problem: "spec.topology.replicas must be 1 without spec.nats.servers" },
    { name: "a broken rule between fields", text: `${head}spec: {admission: {closePercent: 50, reopenPercent: 60}}`, problem: "spec.admission.reopenPercent must be less than closePercent" },
    { name: "a file beyond the limit", text: `${head}# ${"x".repeat(resourceFileBytesMax)}`, problem: "the file is larger than" },
  ];
  it.each(bad)("refuses $name and says: $problem", ({ text, problem }) => {
    const file = read(text);
    expect(file.ok).toBe(false);
    expect(file.ok ? [] : file.problems).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });
});
