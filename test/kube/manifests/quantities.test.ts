import { expect, test } from "vitest";
import { isSameQuantity } from "../../../src/kube/manifests/quantities.ts";

const rows = [
  { a: "1024Mi", b: "1Gi", want: true },
  { a: "1000m", b: 1, want: true },
  { a: "1.5", b: "1500m", want: true },
  { a: "1e3", b: "1k", want: true },
  { a: "0.5Gi", b: "512Mi", want: true },
  { a: "1G", b: "1Gi", want: false },
  { a: "250m", b: "251m", want: false },
  { a: "1n", b: "2n", want: false },
  { a: "worker", b: "worker", want: false },
  { a: "", b: "", want: false },
  { a: undefined, b: undefined, want: false },
];

test.each(rows)("$a and $b are the same amount: $want", ({ a, b, want }) => {
  expect(isSameQuantity(a, b)).toBe(want);
});
