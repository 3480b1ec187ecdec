import { expect, test } from "vitest";
import { countTests, summaryLine, totalOf } from "../../scripts/test-count.ts";

const file = (status: string, ...tests: readonly string[]): object => ({ status, assertionResults: tests.map((each) => ({ status: each })) });
const report = (...files: readonly object[]): string => JSON.stringify({ testResults: files });

const rows = [
  { name: "tests by their outcome", json: report(file("failed", "passed", "failed", "pending", "todo", "skipped")), exitCode: 1, want: "1 passed, 1 failed, 3 skipped", because: "whatever did not run was skipped" },
  { name: "a good run", json: report(file("passed", "passed"), file("passed", "passed")), exitCode: 0, want: "2 passed, 0 failed", because: "files add up" },
  { name: "a file that did not load", json: report(file("failed"), file("passed", "passed")), exitCode: 1, want: "1 passed, 1 failed", because: "its tests are unknown, not absent" },
  { name: "an error after the tests", json: report(file("passed", "passed")), exitCode: 1, want: "1 passed, 1 failed", because: "the run ended badly" },
  { name: "a run without a report", json: "", exitCode: 0, want: "0 passed, 1 failed", because: "nothing is known" },
  { name: "a run without tests", json: report(), exitCode: 0, want: "0 passed, 0 failed", because: "the caller judges that" },
] as const;

test.each(rows)("counts $name: $want", ({ json, exitCode, want, because }) => {
  expect(summaryLine(countTests(json, exitCode)), because).toBe(want);
});

test("counts of several runs add up", () => {
  const total = totalOf([{ passed: 1, failed: 2, skipped: 3 }, { passed: 10, failed: 20, skipped: 30 }]);
  expect(summaryLine(total)).toBe("11 passed, 22 failed, 33 skipped");
});
