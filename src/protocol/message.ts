/** A message as it lies in a stream, before anyone has looked into it. */
export type StoredMessage = {
  readonly subject: string;
  /** Stream sequence. */
  readonly sequence: number;
  /** JetStream timestamp: nanoseconds since the Unix epoch. */
  readonly timestampNs: bigint;
  readonly headers: MessageHeaders;
  readonly body: Uint8Array;
};

/** Header lookup; names are case-sensitive. `all` has every value of a name, in order. */
export type MessageHeaders = {
  readonly get: (name: string) => string | undefined;
  readonly all: (name: string) => readonly string[];
  /** Size of all headers as they came, where that is known: a sender may add up to 64 KiB of its own. */
  readonly byteCount?: number;
};
