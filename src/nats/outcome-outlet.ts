/** Answers to commands, as core messages to the subject that the sender named. They may be lost. */
import { encodeOutcome } from "../protocol/outcome.ts";
import type { OutcomeOutlet } from "../worker/ports.ts";
import type { JetStream } from "./core/jetstream.ts";

/** Answers over the present session; without one they are lost. */
export function natsOutcomeOutlet(jetStream: JetStream): OutcomeOutlet {
  return {
    send(items) {
      for (const { replyTo, outcome } of items) jetStream.send({ subject: replyTo, body: encodeOutcome(outcome) });
    },
  };
}
