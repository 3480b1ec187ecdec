/**
 * NATS headers as bytes. The client's own header class is not used: it refuses to read a message with a single odd
 * header name, so that one such command would come back for ever, and it costs more than the rest of a publish.
 *
 * 1. Reading never throws. Values are trimmed, as the protocol says.
 * 2. Writing a value with a line break, or a name that would be read as another, is a bug: it would smuggle in a header.
 */
import type { MsgHdrs } from "@nats-io/transport-node";
import { assert } from "../../base/assert.ts";
import type { MessageHeaders } from "../../protocol/message.ts";

/** Headers in their order; a name may come more than once. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** Headers to publish. The client asks for nothing but their bytes. */
export function outgoingHeaders(list: HeaderList): MsgHdrs {
  const bytes = encodeHeaders(list);
  return { encode: () => bytes } as unknown as MsgHdrs;
}

/** The bytes between subject and body. */
export function encodeHeaders(list: HeaderList): Uint8Array {
  let text = "NATS/1.0\r\n";
  for (const [name, value] of list) {
    assert(headerName.test(name), "a header name without blanks, colons and line breaks");
    assert(!lineBreak.test(value), "a header value on one line");
    text += `${name}: ${value}\r\n`;
  }
  // Several times faster than a TextEncoder for texts of this size.
  return Buffer.from(`${text}\r\n`, "utf8");
}

const headerName = /^[!-9;-~]+$/;
const lineBreak = /[\r\n]/;

/** Headers of a received message, read when they are first asked for. */
export function messageHeaders(bytes: Uint8Array | undefined): MessageHeaders {
  if (bytes === undefined) return noHeaders;
  let kept: Map<string, string[]> | undefined;
  const parsed = (): Map<string, string[]> => {
    if (kept !== undefined) return kept;
    const all = parseHeaders(bytes);
    // Large ones are a sender's own, and are read anew: as text they would take several times their bytes for as long as
    // their message is in hand.
    if (bytes.length <= keptBytesMax) kept = all;
    return all;
  };
  const values = (name: string): readonly string[] => parsed().get(name) ?? none;
  return { get: (name) => values(name)[0], all: values, byteCount: bytes.length };
}

/** More than the headers of this product's own messages. */
const keptBytesMax = 16 * 1024;

/** Status of a message that the server itself made, such as 503 for nobody there; undefined on ordinary messages. */
export function headerStatus(bytes: Uint8Array | undefined): number | undefined {
  if (bytes === undefined || bytes[statusAt - 1] !== space) return undefined;
  let status = 0;
  for (const byte of bytes.subarray(statusAt, statusAt + 3)) status = status * 10 + (byte - digitZero);
  return status >= 100 && status <= 999 ? status : undefined;
}

const none: readonly string[] = [];
const noHeaders: MessageHeaders = { get: () => undefined, all: () => none };
const decoder = new TextDecoder();
/** "NATS/1.0 " comes before a status. */
const statusAt = 9;
const space = 0x20;
const digitZero = 0x30;

function parseHeaders(bytes: Uint8Array): Map<string, string[]> {
  const parsed = new Map<string, string[]>();
  for (const line of decoder.decode(bytes).split("\r\n").slice(1)) {
    const colonAt = line.indexOf(":");
    if (colonAt <= 0) continue;
    const name = line.slice(0, colonAt);
    const value = line.slice(colonAt + 1).trim();
    const present = parsed.get(name);
    if (present === undefined) parsed.set(name, [value]);
    else present.push(value);
  }
  return parsed;
}
