// `npm run prove:replay`: one year, lived through in several ways; one hash over its records per way, all equal.
//
// The hash is over what the rules determine, which all ways have in common: test/simulation/year.ts says what that leaves out, and
// why. The four ways in virtual time have another one, over every field of the records, which must be equal among them.

import { replay, ways, type ReplayReport } from "../test/simulation/replay.ts";
import { replayInWallTime } from "../test/simulation/replay-wall.ts";

const reports: ReplayReport[] = [];
for (const live of [...ways.map((way) => () => replay(way)), replayInWallTime]) {
  const report = await live();
  const { way, hash, recordsHash = "", days, recordCount, resumeCount, violations } = report;
  console.log(`${way.padEnd(16)} ${hash}  ${days} days, ${recordCount} records, ${resumeCount} resumes, ${violations.length} violations`);
  if (recordsHash !== "") console.log(`${"".padEnd(16)} ${recordsHash}  every field`);
  for (const text of violations.slice(0, 3)) console.log(`  ${text}`);
  reports.push(report);
}
const hashes = new Set(reports.map(({ hash }) => hash));
const recordsHashes = new Set(reports.flatMap(({ recordsHash }) => recordsHash ?? []));
const isEqual = hashes.size === 1 && recordsHashes.size === 1;
const violationCount = reports.reduce((sum, { violations }) => sum + violations.length, 0);
console.log(`\nprove:replay: ${reports.length} ways, ${isEqual ? "all hashes equal" : `${hashes.size} and ${recordsHashes.size} different hashes`}, ${violationCount} violations`);
process.exitCode = isEqual && violationCount === 0 ? 0 : 1;
