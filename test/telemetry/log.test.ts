import { describe, expect, test } from "vitest";
import { Failure } from "../../src/base/failure.ts";
import { openLog } from "../../src/telemetry/log.ts";

function setUp(level: "debug" | "info" = "debug") {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => { lines.push(JSON.parse(line) as Record<string, unknown>); } };
  return { lines, log: openLog({ level, fields: { component: "worker" }, destination }) };
}

describe("a log line", () => {
  test("is JSON with a level in words, a time, the process's fields and its own", () => {
    const { lines, log } = setUp();
    log.child({ loop: "wake" }).warn({ count: 2 }, "Held wakes");
    expect(lines).toEqual([{ level: "warn", time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as unknown, component: "worker", loop: "wake", count: 2, message: "Held wakes" }]);
  });

  test("below the level is not written", () => {
    const { lines, log } = setUp("info");
    log.debug({}, "Took a batch");
    log.info({}, "Opened admission");
    expect(lines.map(({ message }) => message)).toEqual(["Opened admission"]);
  });

  test("shows a failure with its code and the whole chain of causes", () => {
    const { lines, log } = setUp();
    const root = new Error("connect ECONNREFUSED", { cause: "the port is closed" });
    const failure = new Failure("transient", "BROKER_UNREACHABLE", "connect to the broker", { cause: root });
    log.error({ err: new Error("read the lease", { cause: failure }) }, "Gave up");
    expect(lines[0]?.["err"]).toEqual({
      message: "read the lease", name: "Error", stack: expect.any(String) as unknown,
      causes: [
        { message: "connect to the broker", kind: "transient", code: "BROKER_UNREACHABLE" },
        { message: "connect ECONNREFUSED", name: "Error", stack: expect.any(String) as unknown },
        { message: "the port is closed" },
      ],
    });
  });

  test("shows a chain of causes without end only in part", () => {
    const { lines, log } = setUp();
    const error = new Error("a");
    error.cause = error;
    log.error({ err: error }, "Met a circle");
    expect((lines[0]?.["err"] as { readonly causes: readonly unknown[] }).causes).toHaveLength(7);
  });

  const secrets = [
    { name: "on the line", fields: { password: "hush" } },
    { name: "one level down", fields: { options: { token: "hush" } } },
    { name: "two levels down", fields: { options: { nats: { seed: "hush" } } } },
    { name: "in the options of a connection", fields: { options: { auth: { kind: "token", token: "hush" } } } },
    { name: "in a TLS key", fields: { options: { tls: { key: "hush", ca: "public" } } } },
    { name: "in a server's address", fields: { servers: ["nats://me:hush@host:4222", "tls://hush@host"] } },
    { name: "in a payload", fields: { body: "hush" } },
  ];
  test.each(secrets)("hides a secret $name", ({ fields }) => {
    const { lines, log } = setUp();
    log.info(fields, "Connected");
    expect(JSON.stringify(lines)).not.toContain("hush");
    expect(lines).toHaveLength(1);
  });

  test("keeps what only looks like one", () => {
    const { lines, log } = setUp();
    log.info({ key: { flow: "orders", ref: "abc" }, servers: ["nats://host:4222"] }, "Connected");
    expect(lines[0]).toMatchObject({ key: { flow: "orders", ref: "abc" }, servers: ["nats://host:4222"] });
  });
});
