/**
 * The failure taxonomy. A failure says what its receiver must do next, by `kind`; `code` is stable and is what tests
 * and metrics use. Foreign errors are translated once, where they enter, and kept as `cause`.
 */

/**
 * - `transient`: try again later, nothing is known to be wrong with the input.
 * - `conflict`: a compare-and-set was lost; read again and decide again.
 * - `invalid`: can never succeed as it is; needs other input.
 * - `denied`: needs other credentials or rights.
 * - `capacity`: refused for want of space; succeeds once space is freed.
 */
export type FailureKind = "transient" | "conflict" | "invalid" | "denied" | "capacity";

/** Every stable failure code of the product. */
export type FailureCode =
  | "BROKER_UNREACHABLE"
  | "BROKER_TIMEOUT"
  | "BROKER_NO_RESPONDERS"
  | "BROKER_CLOSED"
  | "BROKER_AUTH"
  | "BROKER_PERMISSION"
  | "BROKER_TOO_OLD"
  | "BROKER_FEATURE_MISSING"
  | "BROKER_OVERLOADED"
  | "BROKER_REPLY_MALFORMED"
  | "BROKER_REFUSED"
  | "JETSTREAM_DISABLED"
  | "STREAM_MISSING"
  | "STREAM_EXISTS"
  | "STREAM_INCOMPATIBLE"
  | "STREAM_FULL"
  | "STREAM_SUBJECT_OVERLAP"
  | "STREAM_REPLICAS_UNAVAILABLE"
  | "CONSUMER_MISSING"
  | "CONSUMER_EXISTS"
  | "CONSUMER_INCOMPATIBLE"
  | "STORAGE_INSUFFICIENT"
  | "STORE_CONFLICT"
  | "MESSAGE_TOO_LARGE"
  | "MESSAGE_MISSING"
  | "REQUEST_INVALID"
  | "CONFIG_INVALID"
  | "RESOURCE_INVALID"
  | "CREDENTIALS_MISSING"
  | "CLUSTER_UNREACHABLE"
  | "CLUSTER_CONFLICT"
  | "CLUSTER_DENIED"
  | "CLUSTER_MISSING"
  | "CLUSTER_EXISTS"
  | "CLUSTER_INVALID"
  | "CLUSTER_GONE"
  | "CLUSTER_OVERLOADED"
  | "PROCESS_FAILED"
  | "STATE_LOCKED"
  | "STATE_DAMAGED"
  | "STOPPED";

/** An expected failure of something outside this program. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly kind: FailureKind;
  readonly code: FailureCode;

  /** `attempt` says what was attempted on which thing; it never repeats the text of `cause`. */
  // eslint-disable-next-line max-params -- the options come last, as in every Error of the language
  constructor(kind: FailureKind, code: FailureCode, attempt: string, options?: { readonly cause?: unknown }) {
    super(attempt, options);
    this.kind = kind;
    this.code = code;
  }
}

/** The Failure in `error`, or in the chain of its causes. */
export function failureIn(error: unknown): Failure | undefined {
  for (let at: unknown = error, depth = 0; depth < causeDepthMax; depth += 1) {
    if (at instanceof Failure) return at;
    if (!(at instanceof Error)) return undefined;
    at = at.cause;
  }
  return undefined;
}

/** One line with the whole chain of causes, outermost first. */
export function describeFailure(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error, depth = 0; at !== undefined && depth < causeDepthMax; depth += 1) {
    parts.push(at instanceof Error ? at.message : JSON.stringify(at));
    at = at instanceof Error ? at.cause : undefined;
  }
  return parts.join(": ");
}

const causeDepthMax = 8;
