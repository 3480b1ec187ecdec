import { describe, expect, it } from "vitest";
import { present } from "../../src/base/assert.ts";
import type { DurableTimerSpec } from "../../src/resource/durable-timer.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { readWorkerConfig, workerConfigOf, workerConfigText } from "../../src/resource/worker-config.ts";
import { fullSpec, patched, type Patch } from "./examples.ts";

const folders = { auth: "/auth", ca: "/ca", clientCert: "/cert" };

function spec(patch: Patch): DurableTimerSpec {
  const parsed = parseSpec(patched(patch));
  return present(parsed.ok ? parsed.spec : undefined, "a valid example");
}

describe("workerConfigOf", () => {
  it("turns a full spec into settings in milliseconds, with paths instead of secrets", () => {
    expect(workerConfigOf(spec(fullSpec), folders)).toEqual({
      nats: {
        servers: ["tls://nats-0.nats.example:4222", "tls://nats-1.nats.example:4222"],
        domain: "hub",
        auth: { kind: "user", userFile: "/auth/user", passwordFile: "/auth/pass" },
        tls: { caFile: "/ca/root.crt", certFile: "/cert/tls.crt", keyFile: "/cert/tls.key", handshakeFirst: true },
      },
      limits: { payloadBytesMax: 65_536, delayMsMax: 86_400_000, retriesMax: 3, replyPrefix: "_INBOX.payments" },
      admission: { closePercent: 90, reopenPercent: 50 },
      feedback: { timeoutMs: 600_000, onTimeout: "resume_again" },
      sweep: { intervalMs: 60_000, graceMs: 2_000 },
      retention: { archiveAgeMs: 2_592_000_000, dedupeMs: 604_800_000 },
      lookahead: 500,
      shutdownGraceMs: 55_000,
      healthPort: 8080,
    });
  });

  it("leaves out what an anonymous plain connection does not need", () => {
    expect(workerConfigOf(spec({}), folders).nats).toEqual({ servers: ["nats://nats.example:4222"] });
  });

  it.each([
    { auth: { credentialsSecretRef: { name: "s" } }, want: { kind: "credentials", file: "/auth/user.creds" } },
    { auth: { nkeySecretRef: { name: "s" } }, want: { kind: "nkey", seedFile: "/auth/user.nk" } },
    { auth: { tokenSecretRef: { name: "s", key: "t" } }, want: { kind: "token", file: "/auth/t" } },
  ])("names the file of $want.kind", ({ auth, want }) => {
    expect(workerConfigOf(spec({ workers: { auth } }), folders).nats.auth).toEqual(want);
  });

  it("does not change when admission is closed, so that an emergency stop is no rollout", () => {
    const closed = spec({ admission: { state: "Closed" }, resume: { state: "Paused" }, workers: { replicas: 9 } });
    expect(workerConfigText(workerConfigOf(closed, folders))).toBe(workerConfigText(workerConfigOf(spec({}), folders)));
  });

  it("says nothing of retention while everything is kept, so that its arrival rolls nobody", () => {
    expect(workerConfigOf(spec({}), folders)).not.toHaveProperty("retention");
    expect(workerConfigOf(spec({ retention: { archive: { policy: "Keep", afterSeconds: 3_600, dedupeSeconds: 7_200 } } }), folders)).not.toHaveProperty("retention");
    expect(workerConfigOf(spec({ retention: { archive: { policy: "Expire", afterSeconds: 3_600, dedupeSeconds: 7_200 } } }), folders).retention).toEqual({ archiveAgeMs: 3_600_000, dedupeMs: 7_200_000 });
  });

  it("says nothing of the feedback policy unless it differs from what workers do anyway, so that its arrival rolls nobody", () => {
    expect(workerConfigOf(spec({}), folders)).not.toHaveProperty("feedback");
    expect(workerConfigOf(spec({ feedback: { timeoutSeconds: 86_400, onTimeout: "None" } }), folders)).not.toHaveProperty("feedback");
    expect(workerConfigOf(spec({ feedback: { timeoutSeconds: 300 } }), folders).feedback).toEqual({ timeoutMs: 300_000, onTimeout: "none" });
    expect(workerConfigOf(spec({ feedback: { onTimeout: "Fail" } }), folders).feedback).toEqual({ timeoutMs: 86_400_000, onTimeout: "fail" });
  });

  it("hands on how much all may hold together as it is: the worker knows its own bound, and a release that changes it rolls nobody", () => {
    expect(workerConfigOf(spec({ workers: { maxAckPending: 100_000 } }), folders).lookahead).toBe(100_000);
  });
});

describe("readWorkerConfig", () => {
  it("gives back what was written", () => {
    const config = workerConfigOf(spec(fullSpec), folders);
    expect(readWorkerConfig(workerConfigText(config))).toEqual({ ok: true, config });
  });

  it("ignores keys of a newer operator", () => {
    const config = workerConfigOf(spec({}), folders);
    const newer = JSON.stringify({ ...config, novelty: 1, nats: { ...config.nats, novelty: 2 } });
    expect(readWorkerConfig(newer)).toEqual({ ok: true, config });
  });

  it.each(["", "{", "null", "[]", "{}", '"text"'])("refuses %j without throwing", (text) => {
    const read = readWorkerConfig(text);
    expect(read.ok ? [] : read.problems).not.toEqual([]);
  });

  it("names the field that is wrong", () => {
    const config = workerConfigOf(spec({}), folders);
    const read = readWorkerConfig(JSON.stringify({ ...config, sweep: { intervalMs: "5m", graceMs: 1 } }));
    expect(read).toEqual({ ok: false, problems: [{ field: "sweep.intervalMs", problem: "must be a whole number" }] });
  });
});
