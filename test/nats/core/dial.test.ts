import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Failure } from "../../../src/base/failure.ts";
import type { DurationMs } from "../../../src/base/units.ts";
import { dialOptions } from "../../../src/nats/core/dial.ts";
import type { BrokerAuth, BrokerOptions } from "../../../src/nats/core/jetstream.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "dial-"));
  writeFileSync(join(folder, "user"), "alice\n");
  writeFileSync(join(folder, "password"), "s3cret\r\n");
});
afterAll(() => rmSync(folder, { recursive: true }));

function dial(over: Partial<BrokerOptions>) {
  const failures: Failure[] = [];
  const options = dialOptions({ servers: ["nats://a"], name: "test", ...over }, { beforeDial: () => 0 as DurationMs, onSecretFailure: (failure) => failures.push(failure) });
  const authenticate = options.authenticator as ((nonce?: string) => unknown) | undefined;
  return { options, failures, authenticate: () => authenticate?.("nonce") };
}

describe("connecting", () => {
  test("never gives up, notices dead peers soon, and goes on after refused credentials", () => {
    expect(dial({}).options).toMatchObject({ maxReconnectAttempts: -1, reconnect: true, pingInterval: 10_000, maxPingOut: 2, ignoreAuthErrorAbort: true, noAsyncTraces: true });
  });

  test("reads secrets at each dial, without the line break at their end", () => {
    const auth: BrokerAuth = { kind: "user", userFile: join(folder, "user"), passwordFile: join(folder, "password") };
    const { authenticate } = dial({ auth });
    expect(authenticate()).toEqual({ user: "alice", pass: "s3cret" });
    writeFileSync(join(folder, "password"), "rotated");
    expect(authenticate()).toEqual({ user: "alice", pass: "rotated" });
  });

  test("reports a secret that cannot be read, and lets the server refuse the dial", () => {
    const { authenticate, failures } = dial({ auth: { kind: "token", file: join(folder, "missing") } });
    expect(authenticate()).toEqual({});
    expect(failures.map(({ kind, code }) => [kind, code])).toEqual([["denied", "CREDENTIALS_MISSING"]]);
  });

  test.each<{ readonly auth: BrokerAuth; readonly because: string }>([
    { auth: { kind: "credentials", text: "no credentials" }, because: "it has no JWT" },
    { auth: { kind: "nkey", seed: "SUAX" }, because: "it is no seed" },
  ])("reports a secret that makes no sense: $because", ({ auth }) => {
    const { authenticate, failures } = dial({ auth });
    expect(authenticate()).toEqual({});
    expect(failures).toHaveLength(1);
  });

  test("demands TLS for a tls:// server, and for explicit settings, and for nothing else", () => {
    expect(dial({}).options.tls).toBeUndefined();
    expect(dial({ servers: ["tls://a"] }).options.tls).toEqual({});
    expect(dial({ tls: {} }).options.tls).toEqual({ handshakeFirst: false });
    expect(dial({ tls: { caFile: "ca.crt", ca: "text", cert: "c", key: "k", handshakeFirst: true } }).options.tls).toEqual({ caFile: "ca.crt", cert: "c", key: "k", handshakeFirst: true });
  });
});
