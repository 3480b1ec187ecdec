import { expect, test } from "vitest";
import type { DurationMs, EpochMs, MonotonicMs } from "../../src/base/units.ts";
import { heldSpec, isFree, lookAgain, microTime, releasedSpec, type LeaseObject, type LeaseSpec } from "../../src/kube/lease-record.ts";

const at = (value: number): MonotonicMs => value as MonotonicMs;
const wall = Date.UTC(2030, 0, 1) as EpochMs;
const me = { identity: "me", leaseMs: 15_000 as DurationMs };

function lease(resourceVersion: string, spec: LeaseSpec = { holderIdentity: "other", leaseDurationSeconds: 15 }): LeaseObject {
  return { metadata: { name: "l", namespace: "n", uid: "u", resourceVersion }, spec };
}

const rows = [
  { name: "nobody ever held it", spec: {}, afterMs: 0, want: true, because: "an empty Lease is free" },
  { name: "its holder released it", spec: { holderIdentity: "", leaseDurationSeconds: 15 }, afterMs: 0, want: true, because: "a release need not be waited for" },
  { name: "its holder is silent for less than the lease", spec: { holderIdentity: "other", leaseDurationSeconds: 15 }, afterMs: 14_999, want: false, because: "it may still lead" },
  { name: "its holder is silent for as long as the lease", spec: { holderIdentity: "other", leaseDurationSeconds: 15 }, afterMs: 15_000, want: true, because: "it has stopped by then" },
  { name: "an earlier process had this identity", spec: { holderIdentity: "me", leaseDurationSeconds: 15 }, afterMs: 1, want: false, because: "a name alone proves nothing" },
];

test.each(rows)("a Lease when $name: free is $want", ({ spec, afterMs, want, because }) => {
  const sight = lookAgain(undefined, lease("1", spec), at(1_000));
  expect(isFree(sight, at(1_000 + afterMs)), because).toBe(want);
});

test("only another version of the Lease restarts the wait, whatever its times say", () => {
  const first = lookAgain(undefined, lease("1"), at(0));
  const second = lookAgain(first, lease("1", { holderIdentity: "other", leaseDurationSeconds: 15, renewTime: "2099-01-01T00:00:00.000000Z" }), at(9_000));
  expect(second.changedAtMs).toBe(0);
  expect(lookAgain(second, lease("2"), at(12_000)).changedAtMs).toBe(12_000);
});

test("taking over counts a transition, renewing does not", () => {
  const taken = heldSpec({ holderIdentity: "other", leaseTransitions: 4, acquireTime: "2029-01-01T00:00:00.000000Z" }, me, wall);
  expect(taken).toEqual({
    holderIdentity: "me",
    leaseDurationSeconds: 15,
    acquireTime: "2030-01-01T00:00:00.000000Z",
    renewTime: "2030-01-01T00:00:00.000000Z",
    leaseTransitions: 5,
  });
  expect(heldSpec(taken, me, (wall + 2_000) as EpochMs)).toEqual({ ...taken, renewTime: "2030-01-01T00:00:02.000000Z" });
  expect(heldSpec(undefined, me, wall).leaseTransitions).toBe(0);
});

test("releasing leaves nobody as the holder and keeps the count", () => {
  expect(releasedSpec(heldSpec(undefined, me, wall), wall)).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: 0 });
});

test("times have six digits of a second, which the API server insists on", () => {
  expect(microTime((wall + 7) as EpochMs)).toBe("2030-01-01T00:00:00.007000Z");
});
