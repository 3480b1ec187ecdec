// Ends a timer while it still waits: the order was cancelled before its reminder was due.
//
//   node docs/examples/cancel.ts nats://127.0.0.1:4222

import { connectTimers } from "durable-timer";

const [server = "nats://127.0.0.1:4222"] = process.argv.slice(2);
const timers = await connectTimers({ servers: [server] });
try {
  const { waiting, outcome } = await timers.start({
    flow: { id: "orders", version: "12" },
    execution: `order-${String(Date.now())}`,
    node: "wait-for-payment",
    edges: { start: "placed", elapsed: "payment-overdue" },
    wait: { dueAt: new Date(Date.now() + 86_400_000) },
    body: new Uint8Array(),
  }, { awaitOutcome: true });
  if (outcome?.kind !== "accepted") throw new Error("the timer does not wait");
  const ended = await timers.fail(waiting, { code: "order_cancelled", message: "by the customer" });
  console.log(`${ended.ref}: ${ended.outcome?.kind ?? "stored"}`);
} finally {
  await timers.close();
}
