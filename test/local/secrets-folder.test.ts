import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readResourceFile } from "../../src/local/resource-file.ts";
import { resolveFromFolder, secretFiles, workerSecretFolders } from "../../src/local/secrets-folder.ts";
import { tempFolder } from "./temp-folder.ts";

const folder = tempFolder();

const specOf = (nats: string, workers = "") => {
  const file = readResourceFile(`apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: t}\nspec:\n  nats: {servers: ["tls://a:4222"], ${nats}}\n  workers: {${workers}}\n`, "");
  if (!file.ok) throw new Error(file.problems.join("; "));
  return file.manifest.spec;
};
const put = (secret: string, key: string, text: string) => {
  const path = join(folder, secret, key);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};

put("creds", "user.creds", "-----BEGIN\n");
put("creds", "other.creds", "other");
put("key", "user.nk", "SUABC\n");
put("login", "username", "anna\n");
put("login", "password", "p w\n");
put("tok", "token", "t0ken\n");
put("ca", "ca.crt", "CA");
put("cert", "tls.crt", "CRT");
put("cert", "tls.key", "KEY");
put("empty", "token", "\n");

describe("secrets in a folder", () => {
  const rows = [
    { name: "nothing", nats: "", options: {} },
    { name: "a credentials file, kept as it is", nats: "auth: {credentialsSecretRef: {name: creds}}", options: { auth: { kind: "credentials", text: "-----BEGIN\n" } } },
    { name: "another key of a Secret", nats: "auth: {credentialsSecretRef: {name: creds, key: other.creds}}", options: { auth: { kind: "credentials", text: "other" } } },
    { name: "an NKey without the newline of an editor", nats: "auth: {nkeySecretRef: {name: key}}", options: { auth: { kind: "nkey", seed: "SUABC" } } },
    { name: "user and password", nats: "auth: {userPasswordSecretRef: {name: login}}", options: { auth: { kind: "user", user: "anna", password: "p w" } } },
    { name: "a token", nats: "auth: {tokenSecretRef: {name: tok}}", options: { auth: { kind: "token", token: "t0ken" } } },
    { name: "TLS files", nats: "tls: {caSecretRef: {name: ca}, clientCertSecretRef: {name: cert}, handshakeFirst: true}", options: { tls: { ca: "CA", cert: "CRT", key: "KEY", handshakeFirst: true } } },
    { name: "a domain", nats: "jetStreamDomain: hub", options: { domain: "hub" } },
  ];
  it.each(rows)("resolve $name", ({ nats, options }) => {
    expect(resolveFromFolder(specOf(nats), folder)).toEqual({ kind: "resolved", warnings: [], options: { servers: ["tls://a:4222"], name: "durable-timer-operator", ...options } });
  });

  const missing = [
    { name: "a Secret without a folder", nats: "auth: {tokenSecretRef: {name: nowhere}}", problem: "Secret nowhere has no key token: write it to " },
    { name: "a key without a file", nats: "auth: {credentialsSecretRef: {name: creds, key: missing}}", problem: "Secret creds has no key missing: write it to " },
    { name: "an empty file", nats: "auth: {tokenSecretRef: {name: empty}}", problem: "Secret empty has no key token: write it to " },
  ];
  it.each(missing)("name the file that is to be written for $name", ({ nats, problem }) => {
    const resolved = resolveFromFolder(specOf(nats), folder);
    expect(resolved).toMatchObject({ kind: "missing", problems: [expect.stringContaining(problem + folder)] });
  });

  it("name every missing file at once", () => {
    const resolved = resolveFromFolder(specOf("auth: {userPasswordSecretRef: {name: none}}, tls: {caSecretRef: {name: none}}"), folder);
    expect(resolved.kind === "missing" ? resolved.problems : []).toHaveLength(3);
  });

  it("tell what the workers' own identity lacks, and resolve the operator's", () => {
    const resolved = resolveFromFolder(specOf("auth: {tokenSecretRef: {name: tok}}", "auth: {nkeySecretRef: {name: none}}"), folder);
    expect(resolved).toMatchObject({ kind: "resolved", options: { auth: { kind: "token", token: "t0ken" } }, workerProblems: [expect.stringContaining("Secret none has no key user.nk: write it to ")] });
  });

  it("follow a rotated key of a certificate, which may change alone", () => {
    expect(secretFiles(specOf("tls: {clientCertSecretRef: {name: cert}}"), "/s")).toEqual(["/s/cert/tls.crt", "/s/cert/tls.key"]);
  });

  it("lead the workers to their own identity, or to the operator's without one", () => {
    const shared = specOf("auth: {tokenSecretRef: {name: tok}}, tls: {caSecretRef: {name: ca}}");
    expect(workerSecretFolders(shared, "/s")).toMatchObject({ auth: "/s/tok", ca: "/s/ca" });
    const own = specOf("auth: {tokenSecretRef: {name: tok}}", "auth: {nkeySecretRef: {name: key}}");
    expect(workerSecretFolders(own, "/s").auth).toBe("/s/key");
    expect(secretFiles(own, "/s")).toEqual(["/s/tok/token", "/s/key/user.nk"]);
  });
});
