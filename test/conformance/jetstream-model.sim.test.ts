/** The conformance suite against the model, in real time: what a simulation believes of the broker is what servers do. */
import type { MonotonicMs } from "../../src/base/units.ts";
import { ModelBroker } from "../model/broker.ts";
import { ModelConnection } from "../model/connection.ts";
import { realTimeline } from "../model/timeline.ts";
import { describeJetStream, eventually, ms } from "./jetstream.ts";
import type { ConformanceBroker } from "./jetstream.ts";

async function openModel(replicas: 1 | 3): Promise<ConformanceBroker> {
  const broker = new ModelBroker({ timeline: realTimeline, replicas });
  const connection = new ModelConnection({ broker, name: "conformance", monotonicMs: () => performance.now() as MonotonicMs });
  await connection.connected(ms(1_000));
  return {
    connection,
    replicas,
    crash: async () => {
      const epoch = connection.epoch();
      broker.crash({ tail: 0 });
      await new Promise((resolve) => setTimeout(resolve, 300));
      broker.restart();
      await eventually("the connection is back", () => connection.isConnected() && connection.epoch() > epoch);
    },
    close: () => connection.close(),
  };
}

for (const replicas of [1, 3] as const) describeJetStream(`the model as ${String(replicas)} of them`, () => openModel(replicas));
