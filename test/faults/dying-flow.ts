/** A flow's process that takes resumes and dies by somebody's hand before it answers any: it says how many it holds, and nothing more. */
import { connectTimers } from "../../src/client/connect.ts";

const client = await connectTimers({ servers: process.argv.slice(2) });
let heldCount = 0;
for await (const _ of client.resumes({ lookahead: 100 })) {
  heldCount += 1;
  process.stdout.write(`${String(heldCount)}\n`);
}
