/** Messages for tests, as a stream would hold them. */
import { utf8 } from "../../src/base/bytes.ts";
import type { StoredMessage } from "../../src/protocol/message.ts";

export function message(options: {
  readonly subject: string; readonly headers?: Readonly<Record<string, string>>; readonly body?: Uint8Array | string;
  readonly sequence?: number; readonly timestampNs?: bigint;
}): StoredMessage {
  const headers = new Map(Object.entries(options.headers ?? {}));
  const body = options.body ?? "";
  return {
    subject: options.subject,
    sequence: options.sequence ?? 1,
    timestampNs: options.timestampNs ?? 1_800_000_000_000_000_000n,
    headers: { get: (name) => headers.get(name), all: (name) => { const value = headers.get(name); return value === undefined ? [] : [value]; } },
    body: typeof body === "string" ? utf8(body) : body,
  };
}
