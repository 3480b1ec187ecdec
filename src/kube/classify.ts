/**
 * What the API server answers, as a Failure. By HTTP status and the API's own `reason`, not by the text of a message; the one
 * exception is an applied object of the wrong shape, which is answered (seen on 1.35) as 500 without any reason.
 *
 * A missing or foreign object is a `conflict`: what was read before is no longer so, and the next pass will see it.
 */
import { Failure, type FailureCode, type FailureKind } from "../base/failure.ts";
import { retryAfterMsMax } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";

/** The part of metav1.Status that is used. */
export type ApiStatus = { readonly reason?: string; readonly message?: string; readonly code?: number };

/** An answer of the API server that is no success. */
export type ApiRefusal = {
  readonly httpStatus: number;
  readonly body: ApiStatus;
  /** Text of the header Retry-After. */
  readonly retryAfter?: string;
};

/** The failure that a refusal stands for. `attempt` says what was asked of which thing. */
export function failureOfRefusal(attempt: string, refusal: ApiRefusal): Failure {
  const { kind, code } = classOf(refusal);
  const cause = new Error(`${String(refusal.httpStatus)} ${refusal.body.reason ?? ""} ${refusal.body.message ?? ""}`.trim().slice(0, messageCharsMax));
  return new Failure(kind, code, attempt, { cause });
}

/** The failure of a request that got no answer: refused, reset, timed out, or a certificate that is not accepted. */
export function failureOfSilence(attempt: string, error: unknown): Failure {
  return new Failure("transient", "CLUSTER_UNREACHABLE", attempt, { cause: error });
}

/** How long the server asks to stay away. Only its form in seconds is in use by API servers. */
export function retryAfterMs(refusal: ApiRefusal): DurationMs | undefined {
  const seconds = Number(refusal.retryAfter);
  if (refusal.retryAfter === undefined || !Number.isFinite(seconds) || seconds < 0) return undefined;
  return Math.min(seconds * 1_000, retryAfterMsMax) as DurationMs;
}

type FailureClass = { readonly kind: FailureKind; readonly code: FailureCode };

function classOf({ httpStatus, body }: ApiRefusal): FailureClass {
  if (body.reason === "AlreadyExists") return { kind: "conflict", code: "CLUSTER_EXISTS" };
  if (httpStatus === 500 && body.reason === undefined && wrongShape.test(body.message ?? "")) return { kind: "invalid", code: "CLUSTER_INVALID" };
  const known = byStatus[httpStatus];
  if (known !== undefined) return known;
  return httpStatus >= 500 ? { kind: "transient", code: "CLUSTER_UNREACHABLE" } : { kind: "invalid", code: "CLUSTER_INVALID" };
}

const byStatus: Readonly<Record<number, FailureClass>> = {
  401: { kind: "denied", code: "CLUSTER_DENIED" },
  403: { kind: "denied", code: "CLUSTER_DENIED" },
  404: { kind: "conflict", code: "CLUSTER_MISSING" },
  409: { kind: "conflict", code: "CLUSTER_CONFLICT" },
  410: { kind: "conflict", code: "CLUSTER_GONE" },
  429: { kind: "transient", code: "CLUSTER_OVERLOADED" },
};

const wrongShape = /^failed to create typed patch object /;

/** Messages embed whole objects now and then; a condition must not. */
const messageCharsMax = 2_048;
