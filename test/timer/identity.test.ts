import { describe, expect, test } from "vitest";
import { flowToken, sameLineage, timerKey } from "../../src/timer/identity.ts";
import { lineage, sha256 } from "./records.ts";

describe("a timer's key", () => {
  test("is 32 characters of base32 under the flow's own name", () => {
    const key = timerKey(lineage, sha256);
    expect(key.flow).toBe("orders");
    expect(key.ref).toMatch(/^[a-z2-7]{32}$/);
  });

  test.each([
    ["flow id", { ...lineage, flow: { id: "orders2", version: "12" } }],
    ["flow version", { ...lineage, flow: { id: "orders", version: "13" } }],
    ["execution", { ...lineage, execution: "ex-2" }],
    ["node", { ...lineage, node: "wait-4d" }],
  ])("changes with the %s", (_part, other) => {
    expect(timerKey(other, sha256).ref).not.toBe(timerKey(lineage, sha256).ref);
  });

  test("does not change with the edges", () => {
    expect(timerKey({ ...lineage, edges: { start: "x", elapsed: "y" } }, sha256)).toEqual(timerKey(lineage, sha256));
  });

  test("keeps parts apart that would meet when joined", () => {
    const one = timerKey({ ...lineage, execution: "ab", node: "c" }, sha256);
    const two = timerKey({ ...lineage, execution: "a", node: "bc" }, sha256);
    expect(one.ref).not.toBe(two.ref);
  });
});

describe("a flow's token", () => {
  test.each(["orders", "A-z_09", "x".repeat(64)])("is the id itself when plain: %s", (id) => {
    expect(flowToken(id, sha256)).toBe(id);
  });

  test.each(["a.b", "*", ">", "two words", "", "ü", "x".repeat(65), "~habc"])("is a hash when not plain: %s", (id) => {
    expect(flowToken(id, sha256)).toMatch(/^~h[a-z2-7]{32}$/);
  });
});

test("lineages with and without a retry edge differ", () => {
  const { retry: _, ...edges } = lineage.edges;
  expect(sameLineage(lineage, { ...lineage, edges })).toBe(false);
  expect(sameLineage(lineage, structuredClone(lineage))).toBe(true);
});
