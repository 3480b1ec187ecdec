/** Weather by chance: how rough it is comes from the seed; it ends when it is told to. */
import type { Fate, Operation, Weather } from "../model/weather.ts";
import type { Dice } from "./dice.ts";

/** How rough the weather is. All are probabilities per operation, unless the name says otherwise. */
export type Roughness = {
  readonly lossOfRequest: number;
  readonly lossOfReply: number;
  readonly lossOfSettlement: number;
  /** Done after the sender has given up. */
  readonly late: number;
  /** Takes seconds, in time. */
  readonly slow: number;
  readonly deathBefore: number;
  readonly deathAfter: number;
  readonly refusedWake: number;
  readonly staleRead: number;
  readonly replicaLagMsMax: number;
};

/** What is late arrives by then. */
export const lateMsMax = 25_000;

export const calm: Roughness = {
  lossOfRequest: 0, lossOfReply: 0, lossOfSettlement: 0, late: 0, slow: 0, deathBefore: 0, deathAfter: 0, refusedWake: 0, staleRead: 0, replicaLagMsMax: 0,
};

/** Roughness of one run: most runs have some of everything, some have much of one thing. */
export function roughness(dice: Dice, replicas: 1 | 3): Roughness {
  const level = (): number => dice.pick([0, 0.01, 0.05, 0.15]);
  const death = (): number => dice.pick([0, 0.004, 0.02]);
  return {
    lossOfRequest: level(), lossOfReply: level(), lossOfSettlement: level(), late: dice.pick([0, 0, 0.02, 0.08]), slow: dice.pick([0, 0.02, 0.1]),
    deathBefore: death(), deathAfter: death(), refusedWake: dice.pick([0, 0, 0.1, 0.4]),
    staleRead: replicas === 1 ? 0 : dice.pick([0, 0.3, 0.9]), replicaLagMsMax: dice.pick([300, 3_000, 15_000]),
  };
}

export class Storm implements Weather {
  readonly #dice: Dice;
  readonly #onFate: (operation: Operation, fate: Fate) => void;
  #rough: Roughness;

  constructor(options: { readonly dice: Dice; readonly roughness: Roughness; readonly onFate?: (operation: Operation, fate: Fate) => void }) {
    this.#dice = options.dice;
    this.#rough = options.roughness;
    this.#onFate = options.onFate ?? (() => undefined);
  }

  /** From now on nothing goes wrong. */
  end(): void {
    this.#rough = calm;
  }

  fate(operation: Operation): Fate {
    const fate: Fate = { kind: this.#kindOf(operation), thereMs: this.#travelMs(), backMs: this.#travelMs() };
    const settled = fate.kind === "late" ? { ...fate, thereMs: this.#dice.between(10_500, lateMsMax) } : fate;
    this.#onFate(operation, settled);
    return settled;
  }

  replicaLagMs(): number {
    return this.#dice.chance(this.#rough.staleRead) ? this.#dice.between(1, this.#rough.replicaLagMsMax) : 0;
  }

  refusesWake(): boolean {
    return this.#dice.chance(this.#rough.refusedWake);
  }

  nextRedelivery(count: number): number {
    return count === 1 ? 0 : this.#dice.whole(0, count - 1);
  }

  deliveryMs(): number {
    return this.#travelMs();
  }

  survivesCut(): boolean {
    return this.#dice.chance(0.5);
  }

  #kindOf({ kind, client }: Operation): Fate["kind"] {
    const rough = this.#rough;
    if (rough === calm) return "arrive";
    if (kind === "settle") return this.#dice.chance(rough.lossOfSettlement) ? "lose_request" : this.#death(client);
    if (kind === "pull") return "arrive";
    const throwOf = this.#dice.fraction();
    if (throwOf < rough.lossOfRequest) return "lose_request";
    if (throwOf < rough.lossOfRequest + rough.lossOfReply) return "lose_reply";
    if (kind === "read" || kind === "info") return "arrive";
    return throwOf > 1 - rough.late ? "late" : this.#death(client);
  }

  /** Only workers die by the weather's hand; the owner of the flows has accidents of its own. */
  #death(client: string): Fate["kind"] {
    if (!client.startsWith("worker")) return "arrive";
    const throwOf = this.#dice.fraction();
    if (throwOf < this.#rough.deathBefore) return "die_before";
    return throwOf < this.#rough.deathBefore + this.#rough.deathAfter ? "die_after" : "arrive";
  }

  #travelMs(): number {
    return this.#dice.chance(this.#rough.slow) ? this.#dice.between(50, 4_000) : this.#dice.between(0.1, 3);
  }
}
