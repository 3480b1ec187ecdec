/**
 * What a Lease says, and whether this candidate may take it. Pure: the election's rules without its requests.
 *
 * Expiry is judged by how long this candidate has seen the Lease unchanged on its own monotonic clock. The times written
 * in the Lease are somebody else's wall clock, and are for people only.
 */
import { assert } from "../base/assert.ts";
import { isoFromEpochMs, type DurationMs, type EpochMs, type MonotonicMs } from "../base/units.ts";
import type { KubeObject } from "./objects.ts";

/** As in coordination.k8s.io/v1. */
export type LeaseSpec = {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  readonly leaseTransitions?: number | null;
};

/** A Lease as the API server stores it. */
export type LeaseObject = KubeObject & { readonly spec?: LeaseSpec };

/** A Lease as a candidate saw it; `changedAtMs` is when it first saw this version. */
export type LeaseSight = { readonly lease: LeaseObject; readonly changedAtMs: MonotonicMs };

/** The sight after reading `lease`: only another version restarts the wait. */
export function lookAgain(before: LeaseSight | undefined, lease: LeaseObject, nowMs: MonotonicMs): LeaseSight {
  const isUnchanged = before?.lease.metadata.uid === lease.metadata.uid && before.lease.metadata.resourceVersion === lease.metadata.resourceVersion;
  return isUnchanged ? before : { lease, changedAtMs: nowMs };
}

/** True when nobody holds the Lease, or its holder has let it lie for as long as it said that it would not. */
export function isFree(sight: LeaseSight, nowMs: MonotonicMs): boolean {
  const { holderIdentity, leaseDurationSeconds } = sight.lease.spec ?? {};
  if (holderIdentity === undefined || holderIdentity === null || holderIdentity === "") return true;
  return nowMs - sight.changedAtMs >= (leaseDurationSeconds ?? 0) * 1_000;
}

/** Who holds a Lease, and how long silence is to be believed. */
export type Holder = { readonly identity: string; readonly leaseMs: DurationMs };

/** The spec that makes `holder` the holder, at the wall time `nowMs`. A holder that stays keeps its acquireTime. */
export function heldSpec(before: LeaseSpec | undefined, holder: Holder, nowMs: EpochMs): LeaseSpec {
  assert(holder.leaseMs % 1_000 === 0, "a lease of whole seconds");
  const isRenewal = before?.holderIdentity === holder.identity;
  const now = microTime(nowMs);
  return {
    holderIdentity: holder.identity,
    leaseDurationSeconds: holder.leaseMs / 1_000,
    acquireTime: isRenewal ? (before?.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: (before?.leaseTransitions ?? 0) + (isRenewal || before === undefined ? 0 : 1),
  };
}

/** The spec that gives the Lease up. The shortest duration, should an old client insist on waiting for it. */
export function releasedSpec(before: LeaseSpec | undefined, nowMs: EpochMs): LeaseSpec {
  const now = microTime(nowMs);
  return { ...before, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: now, renewTime: now };
}

/** An instant as MicroTime wants it: with exactly six digits of a second. */
export function microTime(instant: EpochMs): string {
  return isoFromEpochMs(instant).replace(/Z$/, "000Z");
}
