// The owner of a flow: starts a reminder, receives its resumes, and says each time how it goes on.
//
//   npm run build
//   node docs/examples/orders.ts nats://127.0.0.1:4222
//
// The server is the one that `durable-timer up` names when it begins, or any that a Ready DurableTimer uses.

import { connectTimers, Failure } from "durable-timer";
import type { ResumeDelivery, TimerClient } from "durable-timer";

const [server = "nats://127.0.0.1:4222", execution = `order-${String(Date.now())}`] = process.argv.slice(2);
const timers = await connectTimers({ servers: [server] });
try {
  await startReminder(timers, execution);
  await serveResumes(timers, new AbortController());
} finally {
  await timers.close();
}

async function startReminder(timers: TimerClient, execution: string): Promise<void> {
  const { ref, outcome } = await timers.start({
    flow: { id: "orders", version: "12" },
    execution,
    node: "wait-for-payment",
    edges: { start: "placed", elapsed: "payment-overdue", retry: "reminded" },
    wait: { delayMs: 3_000 },
    maxRetries: 2,
    retryWait: { delayMs: 2_000 },
    body: new TextEncoder().encode('{"order": 4711, "total": 1999}'),
  }, { awaitOutcome: true });
  console.log(`${ref}: ${outcome?.kind ?? "stored"}`);
}

async function serveResumes(timers: TimerClient, done: AbortController): Promise<void> {
  for await (const delivery of timers.resumes({ signal: done.signal })) {
    const { lineage, generation, body } = delivery.resume;
    console.log(`${lineage.execution}, generation ${String(generation)}: ${new TextDecoder().decode(body)}`);
    const isSettled = await answer(timers, delivery);
    if (!isSettled) delivery.nak(1_000);
    else if (delivery.ack() && generation === 1) done.abort();
  }
}

/** Asks for one more wait, then completes. False when it is not known whether the answer took effect. */
async function answer(timers: TimerClient, { resume }: ResumeDelivery): Promise<boolean> {
  try {
    const { outcome } = resume.generation === 0 ? await timers.retry(resume) : await timers.complete(resume);
    console.log(`  ${outcome?.kind ?? "stored"}`);
    return outcome?.kind !== "unknown";
  } catch (error) {
    // The feedback stream is full or out of reach for the moment: the resume comes again.
    if (error instanceof Failure && (error.kind === "transient" || error.kind === "capacity")) return false;
    throw error;
  }
}
