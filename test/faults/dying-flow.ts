/** A flow's process that takes resumes and dies by somebody's hand before it answers any: it says how many it holds, and nothing more. */
import { connectTimers } from "../../src/client/connect.ts";

const client = await connectTimers({ servers: process.argv.slice(2) });
const held: string[] = [];
for await (const { resume } of client.resumes({ lookahead: 100 })) {
  held.push(resume.lineage.execution);
  process.stdout.write(`${String(held.length)}\n`);
}
