/** Hears what clients ask of the broker and what they have in hand, so that a test can hold it against its bounds. */
import type { Operation } from "./weather.ts";

/** Messages of a consumer that one client was given and has not settled. */
export type Holding = { readonly client: string; readonly consumer: string; readonly count: number };

export interface Meter {
  readonly asked: (operation: Operation) => void;
  readonly held: (holding: Holding) => void;
}

export const noMeter: Meter = { asked: () => undefined, held: () => undefined };
