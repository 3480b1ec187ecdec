import { describe, expect, it } from "vitest";
import { present } from "../../src/base/assert.ts";
import type { DurableTimerSpec } from "../../src/resource/durable-timer.ts";
import { connectionSecrets, secretNamesOf, workersShareIdentity } from "../../src/resource/secrets.ts";
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

describe("secretNamesOf", () => {
  it("names each Secret once, sorted", () => {
    expect(secretNamesOf(spec(fullSpec))).toEqual(["dt-operator", "dt-tls", "dt-worker", "nats-ca"]);
    expect(secretNamesOf(spec({}))).toEqual([]);
  });
});
