/**
 * What brokers and the client library say, as failures: by error code, status or class, never by text.
 *
 * Codes are those of the server's errors.json. A code that is not listed here is a refusal that nobody foresaw: it is
 * transient when the server blames itself (5xx), else invalid.
 */
import { errors } from "@nats-io/transport-node";
import { Failure } from "../../base/failure.ts";
import type { FailureCode, FailureKind } from "../../base/failure.ts";

/** The error object in a JetStream reply. */
export type ApiError = { readonly code: number; readonly err_code: number; readonly description: string };

/** What the server said, kept as the cause of a failure. */
export class ApiAnswer extends Error {
  override readonly name = "ApiAnswer";
  readonly status: number;
  readonly errorCode: number;

  constructor(error: ApiError) {
    super(`${error.description} (${String(error.err_code)})`);
    this.status = error.code;
    this.errorCode = error.err_code;
  }
}

/** A refusal by the JetStream API or by a stream. `attempt` says what was attempted on which thing. */
export function apiFailure(attempt: string, error: ApiError): Failure {
  const [kind, code] = meanings.get(error.err_code) ?? byStatus(error.code);
  return new Failure(kind, code, attempt, { cause: new ApiAnswer(error) });
}

/** The error in a JSON reply, if it is one. */
export function apiErrorIn(reply: unknown): ApiError | undefined {
  const error = ((reply ?? {}) as { readonly error?: unknown }).error;
  if (typeof error !== "object" || error === null) return undefined;
  const { code, err_code: errorCode, description } = error as Record<string, unknown>;
  return { code: Number(code ?? 500), err_code: Number(errorCode ?? 0), description: typeof description === "string" ? description : "no description" };
}

/** The server's error code behind a failure, for callers that give one code a meaning of their own. */
export function serverErrorCode(failure: Failure): number | undefined {
  return failure.cause instanceof ApiAnswer ? failure.cause.errorCode : undefined;
}

/** Nobody serves the subject: no such stream or consumer, or it has no leader right now. */
export function noRespondersFailure(attempt: string): Failure {
  return new Failure("transient", "BROKER_NO_RESPONDERS", attempt);
}

/** No reply came in time: what was asked may have been done. */
export function timeoutFailure(attempt: string): Failure {
  return new Failure("transient", "BROKER_TIMEOUT", attempt);
}

/** A reply came that says nothing we understand. */
export function malformedFailure(attempt: string, cause?: unknown): Failure {
  return new Failure("transient", "BROKER_REPLY_MALFORMED", attempt, { cause });
}

/** An error of the client library: while connecting, or reported by the connection. */
export function connectionFailure(attempt: string, error: unknown): Failure {
  const [kind, code] = connectionMeaning(error);
  return new Failure(kind, code, attempt, { cause: error });
}

function connectionMeaning(error: unknown): Meaning {
  if (error instanceof errors.PermissionViolationError) return ["denied", "BROKER_PERMISSION"];
  if (error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError) return ["denied", "BROKER_AUTH"];
  if (error instanceof errors.TimeoutError) return ["transient", "BROKER_TIMEOUT"];
  if (error instanceof errors.ClosedConnectionError || error instanceof errors.DrainingConnectionError) return ["transient", "BROKER_CLOSED"];
  return ["transient", "BROKER_UNREACHABLE"];
}

type Meaning = readonly [kind: FailureKind, code: FailureCode];

function byStatus(status: number): Meaning {
  return status >= 500 ? ["transient", "BROKER_REFUSED"] : ["invalid", "BROKER_REFUSED"];
}

const conflict: Meaning = ["conflict", "STORE_CONFLICT"];
const storage: Meaning = ["capacity", "STORAGE_INSUFFICIENT"];
const overloaded: Meaning = ["transient", "BROKER_OVERLOADED"];
const unavailable: Meaning = ["transient", "BROKER_UNREACHABLE"];
const featureMissing: Meaning = ["invalid", "BROKER_FEATURE_MISSING"];
const streamIncompatible: Meaning = ["invalid", "STREAM_INCOMPATIBLE"];
const consumerIncompatible: Meaning = ["invalid", "CONSUMER_INCOMPATIBLE"];

const meanings: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  // Compare-and-set: with the sequence, without it, by message id, and inside a batch.
  [10071, conflict],
  [10164, conflict],
  [10070, conflict],
  [10201, conflict],
  // A copy with the same id is on its way: this one was not stored.
  [10158, overloaded],
  [10163, overloaded],
  [10167, overloaded],
  [10210, overloaded],
  [10176, ["transient", "BROKER_REFUSED"]],

  [10077, ["capacity", "STREAM_FULL"]],
  [10002, storage],
  [10023, storage],
  [10028, storage],
  [10047, storage],
  [10026, storage],
  [10027, storage],
  [10054, ["invalid", "MESSAGE_TOO_LARGE"]],
  [10097, ["invalid", "MESSAGE_TOO_LARGE"]],
  [10199, ["invalid", "MESSAGE_TOO_LARGE"]],
  [10037, ["transient", "MESSAGE_MISSING"]],

  [10008, unavailable],
  [10004, unavailable],
  [10009, unavailable],
  [10118, unavailable],
  [10119, unavailable],
  [10194, featureMissing],
  [10195, featureMissing],
  [10185, ["invalid", "BROKER_TOO_OLD"]],
  [10174, featureMissing],
  [10188, featureMissing],
  [10166, featureMissing],
  [10035, ["denied", "JETSTREAM_DISABLED"]],
  [10039, ["denied", "JETSTREAM_DISABLED"]],
  [10076, ["denied", "JETSTREAM_DISABLED"]],
  [10120, ["denied", "JETSTREAM_DISABLED"]],

  [10059, ["transient", "STREAM_MISSING"]],
  [10058, ["conflict", "STREAM_EXISTS"]],
  [10065, ["invalid", "STREAM_SUBJECT_OVERLAP"]],
  [10052, streamIncompatible],
  [10055, streamIncompatible],
  [10025, streamIncompatible],
  [10113, streamIncompatible],
  [10122, streamIncompatible],
  [10074, ["invalid", "STREAM_REPLICAS_UNAVAILABLE"]],
  [10005, ["transient", "STREAM_REPLICAS_UNAVAILABLE"]],

  [10014, ["transient", "CONSUMER_MISSING"]],
  [10149, ["transient", "CONSUMER_MISSING"]],
  [10013, ["conflict", "CONSUMER_EXISTS"]],
  [10105, ["conflict", "CONSUMER_EXISTS"]],
  [10148, ["conflict", "CONSUMER_EXISTS"]],
  [10012, consumerIncompatible],
  [10084, consumerIncompatible],
  [10098, consumerIncompatible],
  [10099, consumerIncompatible],
  [10100, consumerIncompatible],
  [10101, consumerIncompatible],
]);
