/**
 * The layout of streams and consumers as types: what `desired.ts` renders and `diff.ts` compares.
 *
 * Configurations are in the server's own field names, with durations in nanoseconds, so that what is compared is what the
 * server reports and what is sent is what was compared.
 */
import type { ConsumerRole, StreamRole } from "../protocol/names.ts";

/** Version of the layout that this program creates and its workers need. It grows with every incompatible change. */
export const layoutVersion = 1;

/** A configuration in the server's own field names. */
export type ServerConfig = Readonly<Record<string, unknown>>;

/** One wanted stream. */
export type StreamSpec = {
  readonly kind: "stream";
  readonly role: StreamRole;
  readonly name: string;
  /** Every field that this product owns; also the configuration with which the stream is created. */
  readonly config: ServerConfig;
};

/** One wanted durable consumer. */
export type ConsumerSpec = {
  readonly kind: "consumer";
  readonly role: ConsumerRole;
  readonly stream: string;
  readonly streamRole: StreamRole;
  readonly name: string;
  readonly config: ServerConfig;
};

/** Everything that a DurableTimer wants in NATS. */
export type Topology = {
  /** In the order of creation: STATE first, because creating it is the claim; COMMANDS last, because it is the door. */
  readonly streams: readonly StreamSpec[];
  readonly consumers: readonly ConsumerSpec[];
};

/** One field that differs. */
export type Difference = {
  /** Dotted, in the server's names. */
  readonly field: string;
  readonly desired: unknown;
  readonly actual: unknown;
  /**
   * - `update`: the server changes it in place.
   * - `immutable`: the server refuses to change it on an existing stream or consumer.
   */
  readonly remedy: "update" | "immutable";
};

/** Who owns a stream, as written in its metadata. */
export type Stamp = {
  /** `<cluster id>/<namespace>/<name>`. */
  readonly ownerId: string;
  /** Tells apart the incarnations of the resource; another one of the same owner takes over. */
  readonly ownerUid: string;
  /** Random mark of this life of the stream. */
  readonly incarnation: string;
  readonly layoutVersion: number;
};

/** Whose streams they are; see Stamp. */
export type Owner = { readonly id: string; readonly uid: string };
