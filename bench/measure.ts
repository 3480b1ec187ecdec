// Measures one system once, in a process of its own, and prints the figures as one line of JSON: `measure.ts <load as JSON>`.

import { measure } from "./harness.ts";
import type { Load, OpenSystem } from "./harness.ts";
import { bullMq } from "./systems/bullmq.ts";
import { durableTimer } from "./systems/durable-timer.ts";
import { graphileWorker } from "./systems/graphile-worker.ts";
import { natsSchedules } from "./systems/nats-schedules.ts";
import { pgBoss } from "./systems/pg-boss.ts";
import { postgres } from "./systems/postgres.ts";

/** Which system, and where its servers are. */
export type Target =
  | { readonly system: "durable-timer" | "nats-schedules"; readonly servers: readonly string[]; readonly replicas: number }
  | { readonly system: "bullmq"; readonly port: number }
  | { readonly system: "postgres" | "pg-boss" | "graphile-worker"; readonly connectionString: string };

const { target, load } = JSON.parse(process.argv[2] ?? "{}") as { readonly target: Target; readonly load: Load };
console.log(JSON.stringify(await measure(systemOf(target), load)));
// Some peers keep timers and sockets after they were closed.
process.exit(0);

function systemOf(to: Target): OpenSystem {
  switch (to.system) {
    case "durable-timer": return durableTimer(to.servers);
    case "nats-schedules": return natsSchedules(to.servers, to.replicas);
    case "bullmq": return bullMq(to.port);
    case "postgres": return postgres(to.connectionString);
    case "pg-boss": return pgBoss(to.connectionString);
    case "graphile-worker": return graphileWorker(to.connectionString);
  }
}
