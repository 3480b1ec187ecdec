/**
 * A message in hand, and the words with which it is settled. It is bound to the session in which it came and to the life
 * of its consumer: once either has ended, its sequence may belong to another message, and settling it does nothing.
 */
import { unreachable } from "../../base/assert.ts";
import { utf8 } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { MonotonicMs } from "../../base/units.ts";
import type { StoredMessage } from "../../protocol/message.ts";
import type { Custody } from "./custody.ts";
import type { Delivered, Settlement } from "./jetstream.ts";
import { deliveredMessage } from "./received.ts";
import type { DeliveryInfo, ReceivedMessage } from "./received.ts";
import type { Session } from "./session.ts";

/** What a delivery is made of. */
export type DeliveredParts = {
  readonly session: Session;
  readonly custody: Custody;
  readonly received: ReceivedMessage;
  readonly info: DeliveryInfo;
  readonly clock: Clock;
};

/** A delivery, the session to settle it in, and the custody that allows to. */
export class NatsDelivered implements Delivered {
  readonly message: StoredMessage;
  readonly deliveryCount: number;
  readonly receivedAtMs: MonotonicMs;
  readonly epoch: number;
  /** Bytes that it occupies while it is held. */
  readonly heldBytes: number;
  /** When its acknowledgement wait last began anew. */
  waitBeganAtMs: MonotonicMs;
  readonly #session: Session;
  readonly #custody: Custody;
  readonly #clock: Clock;
  readonly #reply: string;
  #isSettled = false;

  constructor(parts: DeliveredParts) {
    const { session, received, info } = parts;
    const receivedAtMs = parts.clock.monotonicMs();
    this.message = deliveredMessage(received, info);
    this.deliveryCount = info.deliveryCount;
    this.receivedAtMs = receivedAtMs;
    this.waitBeganAtMs = receivedAtMs;
    this.epoch = session.epoch;
    this.heldBytes = received.subject.length + received.reply.length + (received.headerBytes?.length ?? 0) + received.body.length;
    this.#session = session;
    this.#custody = parts.custody;
    this.#clock = parts.clock;
    this.#reply = received.reply;
  }

  settle(how: Settlement): boolean {
    if (this.#isSettled || !this.#custody.allows(this.#clock.monotonicMs())) return false;
    this.#isSettled = how.kind !== "extend";
    return this.#session.send({ subject: this.#reply, body: settlementBody(how) });
  }
}

function settlementBody(how: Settlement): Uint8Array {
  switch (how.kind) {
    case "ack":
      return ackBody;
    case "nak":
      return how.delayMs === 0 ? nakBody : utf8(`-NAK {"delay": ${String(Math.round(how.delayMs * 1_000_000))}}`);
    case "extend":
      return extendBody;
    case "terminate":
      return utf8(`+TERM ${how.reason}`);
    default:
      return unreachable(how);
  }
}

const ackBody = utf8("+ACK");
const nakBody = utf8("-NAK");
const extendBody = utf8("+WPI");
