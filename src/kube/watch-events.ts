/** Cuts the bytes of a watch into events. */
import type { KubeObject } from "./objects.ts";

export type WatchEvent =
  | { readonly kind: "changed"; readonly object: KubeObject }
  | { readonly kind: "deleted"; readonly object: KubeObject }
  /** Nothing happened up to this version: a later watch may begin there. */
  | { readonly kind: "bookmark"; readonly resourceVersion: string }
  /** The server no longer has the versions in between: list again. */
  | { readonly kind: "expired" }
  /** Anything else that the server, or something in between, wrote into the stream. */
  | { readonly kind: "broken"; readonly problem: string };

/**
 * Feed it the pieces of one watch in order. A line longer than `bytesMax` is given up as broken, so that a stream which
 * never ends its line cannot take all memory.
 */
export class WatchEventReader {
  readonly #decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: false });
  readonly #charsMax: number;
  #rest = "";

  constructor(options: { readonly bytesMax: number }) {
    this.#charsMax = options.bytesMax;
  }

  /** The events that `piece` completes. */
  push(piece: Uint8Array): readonly WatchEvent[] {
    const lines = (this.#rest + this.#decoder.decode(piece, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > this.#charsMax) {
      this.#rest = "";
      return [{ kind: "broken", problem: "an event that is too large" }];
    }
    return lines.filter((line) => line !== "").map(eventOf);
  }
}

type RawEvent = { readonly type?: unknown; readonly object?: { readonly metadata?: { readonly resourceVersion?: unknown }; readonly code?: unknown; readonly message?: unknown } };

function eventOf(line: string): WatchEvent {
  const { type, object } = parsed(line);
  const version = object?.metadata?.resourceVersion;
  if (type === "ERROR") return object?.code === 410 ? { kind: "expired" } : { kind: "broken", problem: `an error event: ${String(object?.message)}` };
  if (typeof version !== "string") return { kind: "broken", problem: "an event without a resource version" };
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return { kind: "changed", object: object as KubeObject };
    case "DELETED":
      return { kind: "deleted", object: object as KubeObject };
    case "BOOKMARK":
      return { kind: "bookmark", resourceVersion: version };
    default:
      return { kind: "broken", problem: "an event of an unknown type" };
  }
}

function parsed(line: string): RawEvent {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
