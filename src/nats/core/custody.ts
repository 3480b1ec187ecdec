/**
 * Whether what a consumer delivered may still be settled. A stream that was made anew, or that lost its tail in a crash,
 * gives its sequences out again; an acknowledgement of an old delivery would then remove another timer's message.
 *
 * 1. Deliveries belong to one life of their consumer: the instant of its creation names it. Another one revokes them.
 * 2. Nothing is settled while it is in doubt whether the consumer still lives, nor when it was not seen for a while: this
 *    process may have stood still, and the broker not.
 */
import { custodyTrustMs } from "../../base/limits.ts";
import type { MonotonicMs } from "../../base/units.ts";

/** Deliveries of one life of a consumer. */
export class Custody {
  /** Undefined when this user may not ask for the consumer; then only the end of the session ends the custody. */
  readonly life: string | undefined;
  #seenAtMs: MonotonicMs;
  #isDoubted = false;
  #isRevoked = false;

  constructor(life: string | undefined, seenAtMs: MonotonicMs) {
    this.life = life;
    this.#seenAtMs = seenAtMs;
  }

  /** The consumer was seen alive, in this life. */
  confirm(nowMs: MonotonicMs): void {
    this.#seenAtMs = nowMs;
    this.#isDoubted = false;
  }

  /** Something happened after which the consumer may be another one; `confirm` ends the doubt. */
  doubt(): void {
    this.#isDoubted = true;
  }

  /** Nothing of this life can be settled any more. */
  revoke(): void {
    this.#isRevoked = true;
  }

  /** True when a delivery may be settled now. */
  allows(nowMs: MonotonicMs): boolean {
    if (this.#isRevoked || this.#isDoubted) return false;
    return this.life === undefined || nowMs - this.#seenAtMs <= custodyTrustMs;
  }
}
