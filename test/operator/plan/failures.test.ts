import { describe, expect, it } from "vitest";
import type { FailureCode, FailureKind } from "../../../src/base/failure.ts";
import { failureMessage, isPassing, shownFailure } from "../../../src/operator/plan/failures.ts";
import { planAfterFailures, plan } from "../../../src/operator/plan/plan.ts";
import { conditionTexts, empty, settled, withSpec } from "./scenes.ts";

type Row = { readonly kind: FailureKind; readonly code: FailureCode; readonly want: string; readonly because: string };

describe("a failed creation of a stream", () => {
  const rows: readonly Row[] = [
    { kind: "invalid", code: "STREAM_SUBJECT_OVERLAP", want: "TopologyReady False SubjectOverlap", because: "another stream must go, or this resource" },
    { kind: "capacity", code: "STORAGE_INSUFFICIENT", want: "TopologyReady False InsufficientStorage", because: "sizes or limits must change" },
    { kind: "invalid", code: "STREAM_REPLICAS_UNAVAILABLE", want: "TopologyReady False ReplicasUnavailable", because: "servers must come up" },
    { kind: "invalid", code: "STREAM_INCOMPATIBLE", want: "TopologyReady False StreamIncompatible", because: "the server refuses the configuration" },
    { kind: "invalid", code: "BROKER_FEATURE_MISSING", want: "BrokerCompatible False BrokerFeatureMissing", because: "a server of the cluster is too old" },
    { kind: "denied", code: "BROKER_PERMISSION", want: "BrokerCompatible False PermissionDenied", because: "the user lacks a right" },
    { kind: "denied", code: "BROKER_AUTH", want: "BrokerReachable False CredentialsRefused", because: "the user was revoked in between" },
    { kind: "denied", code: "CLUSTER_DENIED", want: "WorkersReady False WorkersRefused", because: "the operator's role lacks a right" },
    { kind: "invalid", code: "CLUSTER_INVALID", want: "WorkersReady False WorkersRefused", because: "the API server refuses the pod template" },
    { kind: "invalid", code: "CONFIG_INVALID", want: "BrokerReachable False CredentialsInvalid", because: "the Secret's content is unusable" },
  ];
  it.each(rows)("$code is shown as $want", ({ kind, code, want, because }) => {
    const observed = empty();
    const [action] = plan(observed).actions;
    const { status } = planAfterFailures(observed, [{ action: action ?? expect.fail("an action"), failure: { kind, code, message: "create it" } }]);
    const texts = conditionTexts(status);
    const reason = want.split(" ")[2] ?? "";
    expect(texts.filter((text) => text === want || text.startsWith("Stalled")), because).toEqual([want, `Stalled True ${reason}`]);
    expect(texts.filter((text) => text.startsWith("Reconciling"))).toEqual([]);
  });

  it("that may pass is shown as a retry, and closes nothing that was open", () => {
    const observed = withSpec(settled(), { topology: { streams: { terminals: { maxBytes: "30Gi" } } } });
    const [action] = plan(observed).actions;
    const { status } = planAfterFailures(observed, [{ action: action ?? expect.fail("an action"), failure: { kind: "transient", code: "BROKER_TIMEOUT", message: "update it" } }]);
    expect(conditionTexts(status)).toEqual(expect.arrayContaining(["Ready True Serving", "Reconciling True ProgressingWithRetry"]));
  });
});

describe("a failure", () => {
  it("of an unknown gate is shown at the gate of its action", () => {
    expect(shownFailure("STOPPED", "WorkersReady")).toEqual({ type: "WorkersReady", reason: "ProgressingWithRetry", remedy: "" });
  });

  it("passes by itself only when it is transient or a lost race", () => {
    const kinds: readonly FailureKind[] = ["transient", "conflict", "invalid", "denied", "capacity"];
    expect(kinds.filter((kind) => isPassing({ kind, code: "STOPPED", message: "" }))).toEqual(["transient", "conflict"]);
  });

  it("reads as sentences with its remedy", () => {
    expect(failureMessage({ kind: "denied", code: "BROKER_AUTH", message: "connect: refused" }, "Check it.")).toBe("connect: refused. Check it.");
    expect(failureMessage({ kind: "denied", code: "BROKER_AUTH", message: "connect: refused." }, "")).toBe("connect: refused.");
  });
});
