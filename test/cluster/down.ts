/**
 * Ends beds that `up.ts` started: `node test/cluster/down.ts [name...]`. Without names, every bed
 * that nobody owns any more, and those that `up.ts` keeps.
 */
import { endNode, NODE_RUN } from "./node.ts";
import type { Run } from "./runs.ts";
import { isAbandoned, listRuns } from "./runs.ts";

const names = process.argv.slice(2);
const runs = await listRuns();
const chosen = names.length > 0 ? runs.filter((run) => names.includes(run.name)) : runs.filter((run) => run.state.owner === null || isAbandoned(run));
for (const run of chosen) {
  await endRun(run);
  console.log(`Ended ${run.name}`);
}
if (chosen.length === 0) console.log("Nothing to end");

async function endRun(run: Run): Promise<void> {
  await (run.name === NODE_RUN ? endNode(run) : run.end());
}
