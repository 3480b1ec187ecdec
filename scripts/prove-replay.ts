// `npm run prove:replay`: a simulated year, lived through in several ways; one hash over its records per way, all equal.

import { replay, ways } from "../test/simulation/replay.ts";

const reports = [];
for (const way of ways) {
  const report = await replay(way);
  console.log(`${way.padEnd(16)} ${report.hash}  ${report.days} days, ${report.recordCount} records, ${report.resumeCount} resumes, ${report.violations.length} violations`);
  for (const { invariant, text } of report.violations.slice(0, 3)) console.log(`  ${invariant}: ${text}`);
  reports.push(report);
}
const hashes = new Set(reports.map(({ hash }) => hash));
const violationCount = reports.reduce((sum, { violations }) => sum + violations.length, 0);
console.log(`\nprove:replay: ${reports.length} ways, ${hashes.size === 1 ? "all hashes equal" : `${hashes.size} different hashes`}, ${violationCount} violations`);
process.exitCode = hashes.size === 1 && violationCount === 0 ? 0 : 1;
