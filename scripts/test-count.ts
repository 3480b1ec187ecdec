// Counts tests from vitest's JSON report, so that the totals of several runs can be added up.

/** How many tests ended which way. */
export type TestCount = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** Nothing ran. */
export const noTests: TestCount = { passed: 0, failed: 0, skipped: 0 };

/**
 * Counts one report. A file that did not load and a run that ended badly although each of its tests passed count as one failed
 * test each, because a total without failures must mean that all is well.
 */
export function countTests(reportJson: string, exitCode: number): TestCount {
  if (reportJson === "") return { ...noTests, failed: 1 };
  const { testResults } = JSON.parse(reportJson) as VitestReport;
  const statuses = testResults.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status));
  const passed = statuses.filter((status) => status === "passed").length;
  const failedTests = statuses.filter((status) => status === "failed").length;
  const failedFiles = testResults.filter(isFailedOutsideItsTests).length;
  const failed = failedTests + failedFiles;
  return { passed, failed: failed === 0 && exitCode !== 0 ? 1 : failed, skipped: statuses.length - passed - failedTests };
}

/** Adds counts up. */
export function totalOf(counts: readonly TestCount[]): TestCount {
  const sum = (pick: (count: TestCount) => number): number => counts.reduce((total, count) => total + pick(count), 0);
  return { passed: sum(({ passed }) => passed), failed: sum(({ failed }) => failed), skipped: sum(({ skipped }) => skipped) };
}

/** The one form in which counts are printed: `3 passed, 0 failed`, and `, 1 skipped` only if there was one. */
export function summaryLine({ passed, failed, skipped }: TestCount): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`;
}

type VitestReport = {
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
};

function isFailedOutsideItsTests(file: VitestReport["testResults"][number]): boolean {
  return file.status === "failed" && !file.assertionResults.some(({ status }) => status === "failed");
}
