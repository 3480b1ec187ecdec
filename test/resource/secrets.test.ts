import { describe, expect, it } from "vitest";
import { present } from "../../src/base/assert.ts";
import type { DurableTimerSpec } from "../../src/resource/durable-timer.ts";
import { connectionSecrets, identitySecret, secretKeys, workersShareIdentity } from "../../src/resource/secrets.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { fullSpec, patched, type Patch } from "./examples.ts";

function spec(patch: Patch): DurableTimerSpec {
  const parsed = parseSpec(patched(patch));
  return present(parsed.ok ? parsed.spec : undefined, "a valid example");
}

const rows = [
  { name: "nothing", auth: {}, want: undefined },
  { name: "a credentials file", auth: { credentialsSecretRef: { name: "s" } }, want: { kind: "credentials", secretName: "s", key: "user.creds" } },
  { name: "an NKey under a key of its own", auth: { nkeySecretRef: { name: "s", key: "seed" } }, want: { kind: "nkey", secretName: "s", key: "seed" } },
  { name: "a token", auth: { tokenSecretRef: { name: "s" } }, want: { kind: "token", secretName: "s", key: "token" } },
  {
    name: "user and password as in kubernetes.io/basic-auth",
    auth: { userPasswordSecretRef: { name: "s" } },
    want: { kind: "user", secretName: "s", userKey: "username", passwordKey: "password" },
  },
] as const;

describe("connectionSecrets", () => {
  it.each(rows)("finds $name", ({ auth, want }) => {
    expect(connectionSecrets(spec({ nats: { auth } }), "operator").auth).toEqual(want);
  });

  it("gives the workers the operator's identity only when they have none of their own", () => {
    const shared = spec({ nats: { auth: { tokenSecretRef: { name: "operator" } } } });
    const own = spec({ nats: { auth: { tokenSecretRef: { name: "operator" } } }, workers: { auth: { tokenSecretRef: { name: "worker" } } } });
    expect(connectionSecrets(shared, "workers").auth).toMatchObject({ secretName: "operator" });
    expect(connectionSecrets(own, "workers").auth).toMatchObject({ secretName: "worker" });
    expect([workersShareIdentity(shared), workersShareIdentity(own), workersShareIdentity(spec({}))]).toEqual([true, false, false]);
  });

  it("takes an empty auth of the workers for none, so that it does not cut them off", () => {
    const empty = spec({ nats: { auth: { tokenSecretRef: { name: "operator" } } }, workers: { auth: {} } });
    expect(connectionSecrets(empty, "workers").auth).toMatchObject({ secretName: "operator" });
    expect(workersShareIdentity(empty)).toBe(true);
  });

  it("finds certificates", () => {
    expect(connectionSecrets(spec(fullSpec), "workers")).toMatchObject({
      ca: { secretName: "nats-ca", key: "root.crt" },
      clientCert: { secretName: "dt-tls", certKey: "tls.crt", keyKey: "tls.key" },
    });
  });
});

describe("identitySecret", () => {
  const keys: Readonly<Record<string, string>> = { "s/user.creds": "A\n\n", "s/user.nk": "SU\r\n", "s/username": "me\n", "s/password": " p w \n", "s/token": "t\n" };
  const read = (secretName: string, key: string): string => keys[`${secretName}/${key}`] ?? "";
  const rows = [
    { source: { kind: "credentials", secretName: "s", key: "user.creds" }, secret: { kind: "credentials", text: "A\n\n" }, because: "a file is kept byte for byte" },
    { source: { kind: "nkey", secretName: "s", key: "user.nk" }, secret: { kind: "nkey", seed: "SU" }, because: "an editor's newline is no part of it" },
    { source: { kind: "token", secretName: "s", key: "token" }, secret: { kind: "token", token: "t" }, because: "an editor's newline is no part of it" },
    { source: { kind: "user", secretName: "s", userKey: "username", passwordKey: "password" }, secret: { kind: "user", user: "me", password: " p w " }, because: "a password may begin and end with spaces" },
  ] as const;
  it.each(rows)("reads $source.kind as the workers do", ({ source, secret, because }) => {
    expect(identitySecret(source, read), because).toEqual(secret);
  });
});

describe("secretKeys", () => {
  it("names every key of a connection", () => {
    expect(secretKeys(connectionSecrets(spec(fullSpec), "operator")).map((pair) => pair.join("/"))).toEqual(["dt-operator/operator.creds", "nats-ca/root.crt", "dt-tls/tls.crt", "dt-tls/tls.key"]);
    expect(secretKeys(connectionSecrets(spec({}), "workers"))).toEqual([]);
  });
});
