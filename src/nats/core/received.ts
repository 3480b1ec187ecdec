/** Messages as the connection hands them over, and the stored messages that they carry. */
import type { Msg } from "@nats-io/transport-node";
import { noBytes } from "../../base/bytes.ts";
import type { StoredMessage } from "../../protocol/message.ts";
import { headerStatus, messageHeaders } from "./headers.ts";

export type ReceivedMessage = {
  readonly subject: string;
  readonly reply: string;
  /** Present on messages that the server itself made. */
  readonly status?: number;
  readonly headerBytes?: Uint8Array;
  readonly body: Uint8Array;
};

/** Reads past the client's lazy accessors, whose header parser throws; see headers.ts. */
export function receivedMessage(msg: Msg): ReceivedMessage {
  const { _msg: frame, _rdata: raw } = msg as unknown as ClientFrame;
  if (frame.hdr <= 0 || raw === undefined) return { subject: msg.subject, reply: msg.reply ?? "", body: raw ?? noBytes };
  const headerBytes = raw.subarray(0, frame.hdr);
  const status = headerStatus(headerBytes);
  return { subject: msg.subject, reply: msg.reply ?? "", ...(status === undefined ? {} : { status }), headerBytes, body: raw.subarray(frame.hdr) };
}

/** The two fields of the client's message class that hold what came over the wire; test/nats/core/received pins them. */
type ClientFrame = { readonly _msg: { readonly hdr: number }; readonly _rdata?: Uint8Array };

/** What an acknowledgement subject says of its delivery. */
export type DeliveryInfo = {
  readonly deliveryCount: number;
  readonly streamSequence: number;
  readonly timestampNs: bigint;
  /** Messages of the consumer that were not delivered yet. */
  readonly pending: number;
};

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>`, and the longer form with
 * domain and account in front of the stream. Undefined for anything else.
 */
export function deliveryInfo(reply: string): DeliveryInfo | undefined {
  const tokens = reply.split(".");
  if (tokens[0] !== "$JS" || tokens[1] !== "ACK" || tokens.length < shortFormTokens) return undefined;
  const at = tokens.length === shortFormTokens ? 4 : 6;
  const [delivered, streamSequence, , timestamp, pending] = tokens.slice(at);
  const [deliveryCount, sequence, pendingCount] = [countIn(delivered), countIn(streamSequence), countIn(pending)];
  if (deliveryCount === undefined || sequence === undefined || pendingCount === undefined) return undefined;
  if (timestamp === undefined || !digits.test(timestamp)) return undefined;
  return { deliveryCount, streamSequence: sequence, timestampNs: BigInt(timestamp), pending: pendingCount };
}

/** Without an array of its own: a walk over a million messages comes here three million times. */
function countIn(token: string | undefined): number | undefined {
  if (token === undefined || !digits.test(token)) return undefined;
  const count = Number(token);
  return Number.isSafeInteger(count) ? count : undefined;
}

const shortFormTokens = 9;
/** As long as the largest number of 64 bits. */
const digits = /^\d{1,20}$/;

/** The stored message in a delivery. */
export function deliveredMessage(received: ReceivedMessage, info: DeliveryInfo): StoredMessage {
  return {
    subject: received.subject,
    sequence: info.streamSequence,
    timestampNs: info.timestampNs,
    headers: messageHeaders(received.headerBytes),
    body: received.body,
  };
}

/** The stored message in a reply to a direct get; undefined when the reply lacks what describes it. */
export function directMessage(received: ReceivedMessage): StoredMessage | undefined {
  const headers = messageHeaders(received.headerBytes);
  const subject = headers.get("Nats-Subject");
  const sequence = Number(headers.get("Nats-Sequence"));
  const timestampNs = nanosFromRfc3339(headers.get("Nats-Time-Stamp") ?? "");
  if (subject === undefined || !Number.isSafeInteger(sequence) || timestampNs === undefined) return undefined;
  return { subject, sequence, timestampNs, headers, body: received.body };
}

/** The stored message in a JSON reply of the message API; undefined when it is malformed. */
export function apiMessage(message: unknown): StoredMessage | undefined {
  const { subject, seq, time, hdrs, data } = (message ?? {}) as Record<string, unknown>;
  if (typeof subject !== "string" || typeof seq !== "number" || typeof time !== "string") return undefined;
  const timestampNs = nanosFromRfc3339(time);
  if (timestampNs === undefined) return undefined;
  const headers = messageHeaders(typeof hdrs === "string" ? Buffer.from(hdrs, "base64") : undefined);
  return { subject, sequence: seq, timestampNs, headers, body: typeof data === "string" ? Buffer.from(data, "base64") : noBytes };
}

/** Nanoseconds since the epoch of an RFC 3339 instant in UTC, to its last digit; undefined when it is none. */
export function nanosFromRfc3339(text: string): bigint | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  const wholeMs = Date.parse(`${match[1] ?? ""}Z`);
  if (Number.isNaN(wholeMs)) return undefined;
  return BigInt(wholeMs) * 1_000_000n + BigInt((match[2] ?? "").padEnd(9, "0"));
}

const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;
