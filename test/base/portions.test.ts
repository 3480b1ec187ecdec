import { describe, expect, test } from "vitest";
import { portionSize, portionsOf } from "../../src/base/portions.ts";

const limits = { countMax: 3, bytesMax: 10, bytesOf: (size: number) => size };

describe("portions", () => {
  const rows: readonly { readonly name: string; readonly sizes: readonly number[]; readonly want: readonly (readonly number[])[]; readonly because: string }[] = [
    { name: "of nothing", sizes: [], want: [], because: "an empty portion would be work for nobody" },
    { name: "within both bounds", sizes: [5, 5], want: [[5, 5]], because: "the bound itself is allowed" },
    { name: "of many", sizes: [1, 1, 1, 1], want: [[1, 1, 1], [1]], because: "of their number" },
    { name: "of large ones", sizes: [6, 5, 5], want: [[6], [5, 5]], because: "of their bytes" },
    { name: "with one that is too large", sizes: [1, 20, 1], want: [[1], [20], [1]], because: "it has to go some time, and goes alone" },
  ];
  test.each(rows)("$name", ({ sizes, want, because }) => {
    expect(portionsOf(sizes, limits), because).toEqual(want);
    expect(portionSize(sizes, 0, limits), because).toBe(want[0]?.length ?? 0);
  });
});
