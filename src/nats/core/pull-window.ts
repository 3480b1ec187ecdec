/**
 * The account of one source's pull requests: one is open at a time, and the messages of an ended one may still be on
 * their way. With replicas a server says that a request is done before it sends the messages, whose delivery it
 * replicates first.
 */
import type { MonotonicMs } from "../../base/units.ts";
import { messageHeaders } from "./headers.ts";
import type { ReceivedMessage } from "./received.ts";

/** What a status message means for the source: nothing, an ordinary end of the request, or that something has happened. */
export type StatusMeaning = "none" | "ended" | "trouble";

type OpenPull = { readonly token: string; readonly size: number; remaining: number; heardAtMs: MonotonicMs };

/** Counts messages that were asked for and have not come. */
export class PullWindow {
  #open: OpenPull | undefined;
  /** Messages of an ended request which the server says it has sent. */
  #announced = 0;
  #count = 0;

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Messages that will come without another request, as far as is known. */
  get expected(): number {
    return this.#announced + (this.#open?.remaining ?? 0);
  }

  /** Opens a request and gives the token that its status messages carry. */
  open(size: number, nowMs: MonotonicMs): string {
    this.#count += 1;
    this.#open = { token: this.#count.toString(36), size, remaining: size, heardAtMs: nowMs };
    return this.#open.token;
  }

  /** Forgets the open request and what was announced. */
  reset(): void {
    this.#open = undefined;
    this.#announced = 0;
  }

  /** The server gave a sign of life. */
  heard(nowMs: MonotonicMs): void {
    if (this.#open !== undefined) this.#open.heardAtMs = nowMs;
  }

  /** True when an open request has been without a sign of life for longer than `silenceMs`. */
  isSilent(nowMs: MonotonicMs, silenceMs: number): boolean {
    return this.#open !== undefined && nowMs - this.#open.heardAtMs > silenceMs;
  }

  /** One of the messages came. */
  arrived(): void {
    if (this.#announced > 0) {
      this.#announced -= 1;
      return;
    }
    if (this.#open === undefined) return;
    this.#open.remaining -= 1;
    if (this.#open.remaining <= 0) this.#open = undefined;
  }

  /** Judges a status message. `messageBytesMax` is the room that any message needs, for telling an end for want of bytes. */
  status({ token, status, headerBytes }: Pick<ReceivedMessage, "status" | "headerBytes"> & { readonly token: string }, messageBytesMax: number): StatusMeaning {
    const open = this.#open;
    if (status === undefined || status === statusHeartbeat || open?.token !== token) return "none";
    const left = whatIsLeft(headerBytes);
    this.#open = undefined;
    this.#announced = left === undefined ? 0 : Math.max(0, open.remaining - left.messages);
    const hasBrought = this.#announced > 0 || open.remaining < open.size;
    return isOrdinaryEnd({ status, left, hasBrought }, messageBytesMax) ? "ended" : "trouble";
  }
}

type Left = { readonly messages: number; readonly bytes: number };

function isOrdinaryEnd({ status, left, hasBrought }: { readonly status: number; readonly left: Left | undefined; readonly hasBrought: boolean }, messageBytesMax: number): boolean {
  if (status === statusRequestTimeout) return true;
  if (left === undefined) return false;
  return left.messages === 0 || (hasBrought && left.bytes < messageBytesMax);
}

/** What the server did not send of a request; undefined when it does not say, as when the consumer is gone. */
function whatIsLeft(headerBytes: Uint8Array | undefined): Left | undefined {
  const headers = messageHeaders(headerBytes);
  const [messages, bytes] = [headers.get("Nats-Pending-Messages"), headers.get("Nats-Pending-Bytes")];
  return messages === undefined || bytes === undefined ? undefined : { messages: Number(messages), bytes: Number(bytes) };
}

const statusHeartbeat = 100;
const statusRequestTimeout = 408;
