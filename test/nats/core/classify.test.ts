import { errors } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { describeFailure } from "../../../src/base/failure.ts";
import { apiErrorIn, apiFailure, connectionFailure, serverErrorCode } from "../../../src/nats/core/classify.ts";

describe("a refusal by the server", () => {
  test.each([
    { errorCode: 10071, kind: "conflict", code: "STORE_CONFLICT", because: "a compare-and-set with the sequence" },
    { errorCode: 10164, kind: "conflict", code: "STORE_CONFLICT", because: "the same from replicas, without the sequence" },
    { errorCode: 10201, kind: "conflict", code: "STORE_CONFLICT", because: "a message id in a batch was seen before" },
    { errorCode: 10077, kind: "capacity", code: "STREAM_FULL", because: "the stream's own limit" },
    { errorCode: 10002, kind: "capacity", code: "STORAGE_INSUFFICIENT", because: "the account's limit" },
    { errorCode: 10023, kind: "capacity", code: "STORAGE_INSUFFICIENT", because: "the server's limit" },
    { errorCode: 10047, kind: "capacity", code: "STORAGE_INSUFFICIENT", because: "what is reserved already" },
    { errorCode: 10054, kind: "invalid", code: "MESSAGE_TOO_LARGE", because: "max_msg_size" },
    { errorCode: 10058, kind: "conflict", code: "STREAM_EXISTS", because: "another stream has the name" },
    { errorCode: 10065, kind: "invalid", code: "STREAM_SUBJECT_OVERLAP", because: "another stream has the subjects" },
    { errorCode: 10052, kind: "invalid", code: "STREAM_INCOMPATIBLE", because: "an impossible or immutable setting" },
    { errorCode: 10074, kind: "invalid", code: "STREAM_REPLICAS_UNAVAILABLE", because: "replicas on a single server" },
    { errorCode: 10059, kind: "transient", code: "STREAM_MISSING", because: "it may be made at any moment" },
    { errorCode: 10014, kind: "transient", code: "CONSUMER_MISSING", because: "it may be made at any moment" },
    { errorCode: 10149, kind: "transient", code: "CONSUMER_MISSING", because: "an update of what is not there" },
    { errorCode: 10148, kind: "conflict", code: "CONSUMER_EXISTS", because: "another consumer has the name" },
    { errorCode: 10100, kind: "invalid", code: "CONSUMER_INCOMPATIBLE", because: "consumers of a work queue may not overlap" },
    { errorCode: 10039, kind: "denied", code: "JETSTREAM_DISABLED", because: "the account has no JetStream" },
    { errorCode: 10185, kind: "invalid", code: "BROKER_TOO_OLD", because: "the API level that we demand" },
    { errorCode: 10174, kind: "invalid", code: "BROKER_FEATURE_MISSING", because: "the stream allows no batches" },
    { errorCode: 10210, kind: "transient", code: "BROKER_OVERLOADED", because: "too many batches at once" },
    { errorCode: 10158, kind: "transient", code: "BROKER_OVERLOADED", because: "a copy with that id is on its way" },
    { errorCode: 10008, kind: "transient", code: "BROKER_UNREACHABLE", because: "no meta leader" },
  ])("$errorCode is $kind $code: $because", ({ errorCode, kind, code }) => {
    const failure = apiFailure("do a thing", { code: 400, err_code: errorCode, description: "in prose" });
    expect([failure.kind, failure.code, serverErrorCode(failure)]).toEqual([kind, code, errorCode]);
  });

  test.each([
    { status: 400, kind: "invalid", because: "the server blames the request" },
    { status: 503, kind: "transient", because: "the server blames itself" },
  ])("that nobody foresaw is $kind with status $status: $because", ({ status, kind }) => {
    expect(apiFailure("do a thing", { code: status, err_code: 19_999, description: "new" })).toMatchObject({ kind, code: "BROKER_REFUSED" });
  });

  test("says what was attempted, and then what the server said", () => {
    expect(describeFailure(apiFailure("create stream S", { code: 400, err_code: 10058, description: "stream name already in use" }))).toBe("create stream S: stream name already in use (10058)");
  });

  test("is found in a reply that has one", () => {
    expect(apiErrorIn({ error: { code: 404, err_code: 10059, description: "no" } })).toEqual({ code: 404, err_code: 10059, description: "no" });
    expect(apiErrorIn({ stream: "S", seq: 1 })).toBeUndefined();
    expect(apiErrorIn({ error: {} })).toEqual({ code: 500, err_code: 0, description: "no description" });
  });
});

describe("an error of the connection", () => {
  test.each([
    { error: new errors.AuthorizationError("x"), kind: "denied", code: "BROKER_AUTH" },
    { error: new errors.UserAuthenticationExpiredError("x"), kind: "denied", code: "BROKER_AUTH" },
    { error: new errors.PermissionViolationError("x", "publish", "a.b"), kind: "denied", code: "BROKER_PERMISSION" },
    { error: new errors.TimeoutError(), kind: "transient", code: "BROKER_TIMEOUT" },
    { error: new errors.ClosedConnectionError(), kind: "transient", code: "BROKER_CLOSED" },
    { error: new errors.ConnectionError("refused"), kind: "transient", code: "BROKER_UNREACHABLE" },
    { error: new Error("self-signed certificate"), kind: "transient", code: "BROKER_UNREACHABLE" },
  ])("$error.name is $kind $code", ({ error, kind, code }) => {
    expect(connectionFailure("connect", error)).toMatchObject({ kind, code, cause: error });
  });
});
