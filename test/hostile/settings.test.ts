/** Hostile resources, files, quantities, configurations and settings: what a person or a tool can put in front of us. */
import { describe, expect, test, vi } from "vitest";
import { readOperatorSettings } from "../../src/bin/operator-settings.ts";
import { isSameQuantity } from "../../src/kube/manifests/quantities.ts";
import { WatchEventReader } from "../../src/kube/watch-events.ts";
import { readResourceFile } from "../../src/local/resource-file.ts";
import { wholeQuantity } from "../../src/resource/quantity.ts";
import { parseManifest, parseSpec } from "../../src/resource/validate.ts";
import { readWorkerConfig, workerConfigOf, workerConfigText } from "../../src/resource/worker-config.ts";
import { fc } from "../protocol/property.ts";
import { fullSpec } from "../resource/examples.ts";
import { hostileBytes, hostileText, hostileTexts, hostileValues, mutated, replacedLeaves } from "./corpus.ts";

// Thousands of cases each: a busy machine takes its time.
vi.setConfig({ testTimeout: 60_000 });

const problemCharsMax = 2_000;
const embeddedUrl = "nats://127.0.0.1:4222";
const head = "apiVersion: durabletimer.dev/v1alpha1\nkind: DurableTimer\nmetadata: {name: orders}\n";

describe("a spec", () => {
  test("with any one value replaced is accepted or refused at that place", () => {
    const ofWorkers = /^workers\.(resources|podTemplate)/;
    for (const [path, replaced, put] of replacedLeaves(fullSpec, hostileValues.filter((_, index) => index % 2 === 0))) {
      const parsed = parseSpec(replaced);
      if (parsed.ok || ofWorkers.test(path)) continue;
      const named = parsed.problems.some(({ field, problem }) => isNear(field, path) && problem !== "" && problem.length < problemCharsMax);
      if (!named) expect([path, put, parsed.problems]).toEqual([path, put, "a problem at that place"]);
    }
    expect(parseSpec(fullSpec).ok).toBe(true);
  });

  test.each(hostileValues.map((value) => [JSON.stringify(value), value] as const))("of %s is refused", (_name, value) => {
    expect([parseSpec(value).ok, parseManifest(value).ok]).toEqual([false, false]);
  });

  test("leaves nothing behind in the prototype of all objects", () => {
    parseManifest(JSON.parse('{"__proto__":{"polluted":1},"apiVersion":"durabletimer.dev/v1alpha1","kind":"DurableTimer","metadata":{"name":"a","labels":{"__proto__":"x"}},"spec":{"__proto__":{"polluted":1}}}'));
    readResourceFile(`${head}spec: {__proto__: {polluted: 1}}\n__proto__: {polluted: 1}\n`, embeddedUrl);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("a resource file", () => {
  const aliases = `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 12 }, (_, index) => `${"bcdefghijklm".charAt(index)}: &${"bcdefghijklm".charAt(index)} [${Array(9).fill(`*${"abcdefghijklm".charAt(index)}`).join(",")}]`).join("\n")}\n`;
  const odd: readonly (readonly [string, string])[] = [
    ["aliases that multiply", `${head}${aliases}`],
    ["an alias of itself", `${head}spec: &spec {nats: *spec}\n`],
    ["an unknown alias", `${head}spec: *none\n`],
    ["a tag that makes code of text", `${head}spec: !!js/function "function () { process.exit() }"\n`],
    ["a binary value", `${head}spec: !!binary AAECAw==\n`],
    ["a duplicate key", `${head}kind: DurableTimer\n`],
    ["a merge key", `${head}spec: {<<: {nats: {servers: []}}}\n`],
    ["deep flow lists", `${head}spec: ${"[".repeat(2_000)}`],
    ["deep flow lists that close", `${head}spec: ${"[".repeat(2_000)}${"]".repeat(2_000)}`],
    ["deep maps", `${head}spec: ${"{a: ".repeat(2_000)}1${"}".repeat(2_000)}`],
    ["deep lists in lines", `${head}spec:\n  ${"- ".repeat(2_000)}1`],
    ["tabs", `${head}spec:\n\tnats: {}\n`],
    ["a long line", `${head}spec: {nats: {accountName: "${"a".repeat(900_000)}"}}\n`],
    ["more than the largest size", `${head}# ${"a".repeat(1_100_000)}\n`],
    ["a number with an exponent", `${head}spec: {topology: {streams: {state: {maxBytes: 1e400}}}}\n`],
    ["not a number", `${head}spec: {topology: {streams: {state: {maxBytes: .nan}}}}\n`],
    ["an octal port", `${head}spec: {workers: {replicas: 0o777777777777}}\n`],
    ["many documents", `${head}---\n`.repeat(500)],
    ["a directive", `%YAML 9.9\n---\n${head}`],
    ["a NUL", `${head}spec: "\u0000"\n`],
    ["a byte order mark in the middle", `${head}\ufeffspec: {}\n`],
  ];

  test.each([...odd, ...hostileTexts.filter(([, text]) => text.length < 50_000 || !/[[{]/.test(text))])("of %s is read or refused in words", (_name, text) => {
    const file = readResourceFile(text, embeddedUrl);
    expect(file.ok || (file.problems.length > 0 && file.problems.every((problem) => problem !== "" && problem.length < problemCharsMax))).toBe(true);
  });

  test("mutated anywhere is read or refused in words", () => {
    const text = `${head}spec:\n  nats: {servers: ["nats://a:4222"]}\n  topology:\n    streams:\n      state: {maxBytes: 1Gi}\n  workers: &w {replicas: 5}\n`;
    fc.assert(fc.property(fc.oneof(mutated(text), hostileText), (hostile) => {
      const file = readResourceFile(hostile, embeddedUrl);
      expect(file.ok || file.problems.every((problem) => problem !== "")).toBe(true);
    }), { numRuns: 150 });
  });
});

describe("a quantity", () => {
  test.each(["", " 1", "1 ", "1 Gi", "1GiB", "0x10", "1e", "1e+", "1e100", "-", ".", "1.2.3", "١", "1".repeat(10_000), `1${"0".repeat(60)}`, "1e99", "9007199254740993", "Infinity", "NaN", "--1", "1ee1", "1Eiu", "\u0000"])("%j is refused with what to write", (text) => {
    expect(wholeQuantity(text)).toMatchObject({ ok: false, problem: expect.stringMatching(/^must /) as string });
    expect(typeof isSameQuantity(text, text)).toBe("boolean");
  });

  test("of any text is a whole number that is exact, or refused", () => {
    const pieces = fc.array(fc.constantFrom("1", "9", "0", ".", "-", "+", "e", "E", "Ki", "n", "Gi", " ", "99999999999999999999"), { maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(fc.property(fc.oneof(pieces, hostileText), (text) => {
      const read = wholeQuantity(text);
      expect(read.ok ? Number.isSafeInteger(read.value) : read.problem.startsWith("must ")).toBe(true);
      isSameQuantity(text, "1Gi");
    }), { numRuns: 1_000 });
  });
});

describe("a worker's configuration", () => {
  const parsed = parseSpec({ nats: { servers: ["nats://a:4222"] }, topology: { streams: Object.fromEntries(["state", "commands", "feedback", "snapshots", "terminals", "resumes"].map((role) => [role, { maxBytes: "1Gi" }])) } });
  const text = parsed.ok ? workerConfigText(workerConfigOf(parsed.spec, { auth: "/auth", ca: "/ca", clientCert: "/cert" })) : "";

  test("with any one value replaced is accepted or refused at that place", () => {
    expect(readWorkerConfig(text).ok).toBe(true);
    for (const [path, replaced, put] of replacedLeaves(JSON.parse(text), hostileValues)) {
      const read = readWorkerConfig(JSON.stringify(replaced));
      const named = read.ok || read.problems.some(({ field, problem }) => isNear(field, path) && problem !== "");
      if (!named) expect([path, put, read]).toEqual([path, put, "a problem at that place"]);
    }
  });

  test.each(hostileTexts)("of %s is refused in few words", (_name, hostile) => {
    const read = readWorkerConfig(hostile);
    expect(read.ok ? [] : read.problems).toSatisfy((problems: readonly { readonly problem: string }[]) => problems.length > 0 && problems.every(({ problem }) => problem.length < problemCharsMax));
  });

  test("mutated anywhere is read or refused, and never throws", () => {
    fc.assert(fc.property(mutated(text), (hostile) => {
      const read = readWorkerConfig(hostile);
      expect(read.ok || read.problems.length > 0).toBe(true);
    }), { numRuns: 1_000 });
  });
});

test("the operator's settings of any environment are read or refused by the variable's name", () => {
  const names = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "DURABLE_TIMER_WATCH_NAMESPACES", "DURABLE_TIMER_WORKER_IMAGE", "DURABLE_TIMER_CLUSTER_ID", "DURABLE_TIMER_LEASE_NAME", "DURABLE_TIMER_LEASE_NAMESPACE", "DURABLE_TIMER_HEALTH_PORT", "DURABLE_TIMER_HEALTH_HOST", "LOG_LEVEL"];
  const value = fc.oneof(hostileText, fc.constantFrom("-1", "65536", "8080.5", "0x50", "1e3", ",", ", ,", "a,a", " ", "__proto__", "verbose"));
  fc.assert(fc.property(fc.dictionary(fc.constantFrom(...names), value), (environment) => {
    const read = readOperatorSettings(environment);
    expect(read.ok || read.problems.every((problem) => names.some((name) => problem.startsWith(name)))).toBe(true);
  }), { numRuns: 1_000 });
});

test("a watch of any bytes, cut anywhere, gives events or says that it is broken", () => {
  const line = fc.oneof(hostileText, fc.json(), mutated('{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}'), fc.constantFrom('{"type":"ADDED","object":null}', '{"type":"ERROR","object":{"code":410}}', '{"type":"ADDED","object":{"metadata":null}}', '{"object":5}'));
  const piece = fc.oneof(hostileBytes, line.map((text) => Buffer.from(`${text}\n`)));
  fc.assert(fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
    const reader = new WatchEventReader({ bytesMax: 4_096 });
    for (const event of pieces.flatMap((bytes) => reader.push(bytes))) expect(["changed", "deleted", "bookmark", "expired", "broken"]).toContain(event.kind);
  }), { numRuns: 1_000 });
});

/** The field, one that holds it, or one within it. */
function isNear(field: string, path: string): boolean {
  const plain = (name: string): string => name.replace(/^spec\./, "").replaceAll("[", ".").replaceAll("]", "");
  const [a, b] = [plain(field), plain(path)];
  return a === b || a === "" || `${a}.`.startsWith(`${b}.`) || `${b}.`.startsWith(`${a}.`);
}
