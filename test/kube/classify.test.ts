import { expect, test } from "vitest";
import { retryAfterMsMax } from "../../src/base/limits.ts";
import { failureOfRefusal, failureOfSilence, retryAfterMs } from "../../src/kube/classify.ts";

const rows = [
  { httpStatus: 401, reason: "Unauthorized", kind: "denied", code: "CLUSTER_DENIED", because: "a token that is not accepted needs another one" },
  { httpStatus: 403, reason: "Forbidden", kind: "denied", code: "CLUSTER_DENIED", because: "a missing right needs another role" },
  { httpStatus: 404, reason: "NotFound", kind: "conflict", code: "CLUSTER_MISSING", because: "what was read is gone: read again" },
  { httpStatus: 409, reason: "AlreadyExists", kind: "conflict", code: "CLUSTER_EXISTS", because: "somebody else was faster" },
  { httpStatus: 409, reason: "Conflict", kind: "conflict", code: "CLUSTER_CONFLICT", because: "the object was written since it was read" },
  { httpStatus: 410, reason: "Expired", kind: "conflict", code: "CLUSTER_GONE", because: "list again" },
  { httpStatus: 422, reason: "Invalid", kind: "invalid", code: "CLUSTER_INVALID", because: "the same object will be refused again" },
  { httpStatus: 400, reason: "BadRequest", kind: "invalid", code: "CLUSTER_INVALID", because: "the same request will be refused again" },
  { httpStatus: 429, reason: "TooManyRequests", kind: "transient", code: "CLUSTER_OVERLOADED", because: "the server asks for patience" },
  { httpStatus: 500, reason: "InternalError", kind: "transient", code: "CLUSTER_UNREACHABLE", because: "its store may be without a leader" },
  { httpStatus: 504, reason: "Timeout", kind: "transient", code: "CLUSTER_UNREACHABLE", because: "nothing is known of the outcome" },
];

test.each(rows)("$httpStatus $reason is $code", ({ httpStatus, reason, kind, code, because }) => {
  const failure = failureOfRefusal("GET /x", { httpStatus, body: { reason, message: "words" } });
  expect({ kind: failure.kind, code: failure.code }, because).toEqual({ kind, code });
});

test("an applied object of the wrong shape is invalid, although it is answered as an internal error", () => {
  const message = "failed to create typed patch object (n/x; apps/v1, Kind=Deployment): .spec.x: field not declared in schema";
  expect(failureOfRefusal("PATCH /x", { httpStatus: 500, body: { message } })).toMatchObject({ kind: "invalid", code: "CLUSTER_INVALID" });
});

test("a failure keeps the server's words as its cause and never repeats them", () => {
  const failure = failureOfRefusal("PATCH /apis/apps/v1/x", { httpStatus: 422, body: { reason: "Invalid", message: "spec.replicas: must not be negative" } });
  expect(failure.message).toBe("PATCH /apis/apps/v1/x");
  expect(failure.cause).toMatchObject({ message: "422 Invalid spec.replicas: must not be negative" });
});

test("a request without an answer is transient", () => {
  expect(failureOfSilence("GET /x", new TypeError("fetch failed"))).toMatchObject({ kind: "transient", code: "CLUSTER_UNREACHABLE" });
});

const waits = [
  { retryAfter: "3", want: 3_000, because: "seconds are the form in use" },
  { retryAfter: "0", want: 0, because: "now is an answer as well" },
  { retryAfter: "86400", want: retryAfterMsMax, because: "no server may park the operator for a day" },
  { retryAfter: "Wed, 21 Oct 2026 07:28:00 GMT", want: undefined, because: "dates are not used by API servers" },
  { retryAfter: "-1", want: undefined, because: "nonsense is ignored" },
];

test.each(waits)("Retry-After $retryAfter means $want", ({ retryAfter, want, because }) => {
  expect(retryAfterMs({ httpStatus: 429, body: {}, retryAfter }), because).toBe(want);
});
