/**
 * Everything that can go wrong between a client and the broker, and inside the broker, decided in one place: by chance in
 * a simulation, by a list in a crash test, by nobody in fair weather.
 */

/** One thing that a client asks of the broker. */
export type Operation = {
  readonly client: string;
  readonly kind: "publish" | "batch" | "purge" | "settle" | "read" | "info" | "pull";
  readonly stream: string;
  /** The subject that it writes, reads or settles; the first one of many. */
  readonly subject: string;
  /** Messages or subjects in it. */
  readonly count: number;
  /** For settlements. */
  readonly how?: "ack" | "nak" | "extend" | "terminate";
};

/**
 * - `arrive`: done, and answered.
 * - `lose_request`: not done, and not answered.
 * - `lose_reply`: done, and not answered.
 * - `late`: done after the client has given up waiting.
 * - `die_before`, `die_after`: the client's process ends before it was sent, or when it was done but not answered.
 */
export type Fate = { readonly kind: "arrive" | "lose_request" | "lose_reply" | "late" | "die_before" | "die_after"; readonly thereMs: number; readonly backMs: number };

export interface Weather {
  readonly fate: (operation: Operation) => Fate;
  /** How old the state is that a replica answers with. */
  readonly replicaLagMs: (stream: string) => number;
  /** True when the broker cannot store this wake; it then forgets about its schedule. */
  readonly refusesWake: (subject: string) => boolean;
  /** Which of `count` messages that wait for redelivery is delivered next. */
  readonly nextRedelivery: (count: number) => number;
  /** For a message on its way to a source. */
  readonly deliveryMs: () => number;
  /** Whether what a lost connection still carried reaches the broker. */
  readonly survivesCut: () => boolean;
}

/** Nothing goes wrong, and everything takes a moment. */
export const fairWeather: Weather = {
  fate: () => fair,
  replicaLagMs: () => 0,
  refusesWake: () => false,
  nextRedelivery: () => 0,
  deliveryMs: () => 0.1,
  survivesCut: () => true,
};

const fair: Fate = { kind: "arrive", thereMs: 0.1, backMs: 0.1 };
