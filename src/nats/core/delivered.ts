/**
 * A message in hand, and the words with which it is settled. It is bound to the session in which it came: once that has
 * ended, its sequence may belong to another message, and settling it does nothing.
 */
import { unreachable } from "../../base/assert.ts";
import { utf8 } from "../../base/bytes.ts";
import type { MonotonicMs } from "../../base/units.ts";
import type { StoredMessage } from "../../protocol/message.ts";
import type { Delivered, Settlement } from "./jetstream.ts";
import { deliveredMessage } from "./received.ts";
import type { DeliveryInfo, ReceivedMessage } from "./received.ts";
import type { Session } from "./session.ts";

/** A delivery and the session to settle it in. */
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
  readonly #reply: string;
  #isSettled = false;

  constructor(parts: { readonly session: Session; readonly received: ReceivedMessage; readonly info: DeliveryInfo; readonly receivedAtMs: MonotonicMs }) {
    const { session, received, info, receivedAtMs } = parts;
    this.message = deliveredMessage(received, info);
    this.deliveryCount = info.deliveryCount;
    this.receivedAtMs = receivedAtMs;
    this.waitBeganAtMs = receivedAtMs;
    this.epoch = session.epoch;
    this.heldBytes = received.subject.length + received.reply.length + (received.headerBytes?.length ?? 0) + received.body.length;
    this.#session = session;
    this.#reply = received.reply;
  }

  settle(how: Settlement): boolean {
    if (this.#isSettled) return false;
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
