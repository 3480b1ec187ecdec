/**
 * Judges the connection and the broker behind it: BrokerReachable, BrokerCompatible and CredentialsValid.
 *
 * 1. A loss shorter than the grace is held: nothing flips, because the broker is usually back before anyone could act.
 * 2. A definite answer (credentials refused, JetStream off) is never held.
 * 3. Nothing in the account is touched unless the result is `usable`.
 */
import { brokerApiLevelMin, brokerLossGraceMs, brokerVersionMin, lookAgainMs, payloadHeadroomBytes } from "../../base/limits.ts";
import type { DurationMs } from "../../base/units.ts";
import type { WantedCondition } from "../../resource/conditions.ts";
import type { DurableTimerSpec } from "../../resource/durable-timer.ts";
import { describeProblem } from "../../resource/problems.ts";
import { changedSinceApplied } from "../../resource/rules.ts";
import { workersShareIdentity } from "../../resource/secrets.ts";
import { failureMessage, isPassing, shownFailure } from "./failures.ts";
import type { BrokerFacts, BrokerObservation, ConnectionFact, FailureFact, Observed } from "./observed.ts";
import { carriedOver, cause, want, wasTrue } from "./verdict.ts";
import type { Cause, Verdict } from "./verdict.ts";

/** A broker that answered. */
export type ReachedBroker = Extract<BrokerObservation, { readonly kind: "reached" }>;

/** What may be done with the broker. */
export type BrokerVerdict = Verdict &
  (
    | { readonly kind: "usable"; readonly broker: ReachedBroker }
    /** Reached, and not to be used as it is. */
    | { readonly kind: "refused" }
    /** Out of sight for so short a time that the last status still stands. */
    | { readonly kind: "held" }
    | { readonly kind: "lost"; readonly because: Cause }
  );

/** Judges what the gather found between us and the broker. */
export function judgeBroker(observed: Observed): BrokerVerdict {
  const { broker } = observed;
  if (broker === undefined) return judgeWithoutConnection(observed);
  if (broker.kind === "reached") return judgeReached(observed, broker);
  return judgeUnreached(observed, broker.failure, broker.lostForMs);
}

function judgeWithoutConnection(observed: Observed): BrokerVerdict {
  const { connection } = observed;
  switch (connection.kind) {
    case "missing":
      return withoutCredentials(cause("CredentialsMissing", problemText(connection.problems)));
    case "failed":
      return isPassing(connection.failure) ? judgeSilentCluster(observed, connection) : judgeRefusingCluster(connection.failure);
    case "resolved":
      return { kind: "held", wanted: carriedOver(observed.resource.status, brokerTypes), actions: [], requeueAfterMs: lookAgainMs };
  }
}

/** Only the cluster failed to tell what the connection is made of; the broker may be well. */
function judgeSilentCluster({ resource }: Observed, { failure, failedForMs }: Extract<ConnectionFact, { readonly kind: "failed" }>): BrokerVerdict {
  const rest = { actions: [], requeueAfterMs: lookAgainMs };
  const isHeld = failedForMs < brokerLossGraceMs && wasTrue(resource.status, "BrokerReachable");
  if (isHeld) return { kind: "held", wanted: carriedOver(resource.status, brokerTypes), ...rest };
  const because = cause("NotObserved", failureMessage(failure, ""));
  return { kind: "lost", because: cause("NotObserved"), wanted: brokerTypes.map((type) => want(type, "Unknown", because)), ...rest };
}

function judgeRefusingCluster(failure: FailureFact): BrokerVerdict {
  const stall = cause("PermissionDenied", failureMessage(failure, "Let the operator's role read the Secrets that spec.nats names."));
  return { ...withoutCredentials(stall), stall };
}

function withoutCredentials(because: Cause): BrokerVerdict {
  return {
    kind: "lost",
    because: cause(because.reason),
    wanted: [want("BrokerReachable", "False", because), unknownCompatibility, want("CredentialsValid", "False", because)],
    actions: [],
  };
}

function judgeUnreached(observed: Observed, failure: FailureFact, lostForMs: DurationMs): BrokerVerdict {
  const { status } = observed.resource;
  const isHeld = isPassing(failure) && lostForMs < brokerLossGraceMs && wasTrue(status, "BrokerReachable");
  if (isHeld) {
    const requeueAfterMs = (brokerLossGraceMs - lostForMs) as DurationMs;
    return { kind: "held", wanted: carriedOver(status, brokerTypes), actions: [], requeueAfterMs };
  }
  const { type, reason, remedy } = shownFailure(failure.code, "BrokerReachable");
  const because = cause(reason, failureMessage(failure, remedy));
  const credentials = judgeCredentials(observed, failure);
  if (type !== "BrokerReachable") {
    const wanted = [want("BrokerReachable", "True", cause("Connected")), want("BrokerCompatible", "False", because), credentials];
    return { kind: "refused", wanted, actions: [], ...(isPassing(failure) ? {} : { stall: because }) };
  }
  const wanted = [want("BrokerReachable", "False", because), unknownCompatibility, credentials];
  return { kind: "lost", because: cause("BrokerUnreachable"), wanted, actions: [] };
}

function judgeReached(observed: Observed, broker: ReachedBroker): BrokerVerdict {
  const { spec } = observed.resource;
  const reached = [want("BrokerReachable", "True", cause("Connected")), judgeCredentials(observed)];
  const stall = changeObjection(observed) ?? objection(spec, broker.facts);
  if (stall !== undefined) {
    return { kind: "refused", wanted: [...reached, want("BrokerCompatible", "False", stall)], actions: [], stall };
  }
  const compatible = cause("Compatible", payloadNote(spec, broker.facts));
  return { kind: "usable", broker, wanted: [...reached, want("BrokerCompatible", "True", compatible)], actions: [] };
}

/** In another JetStream domain everything would look new, and the data of before would be forgotten. */
function changeObjection({ resource }: Observed): Cause | undefined {
  const changed = changedSinceApplied(resource.status?.applied, resource.spec);
  if (changed.length === 0) return undefined;
  return cause("ImmutableFieldChanged", `${changed.map(describeProblem).join("; ")}. Nothing was touched. Undo the change.`);
}

/** Why this broker must not be used for this spec; undefined when it may. */
function objection(spec: DurableTimerSpec, facts: BrokerFacts): Cause | undefined {
  return versionObjection(facts) ?? accountObjection(spec, facts) ?? replicasObjection(spec, facts);
}

function versionObjection(facts: BrokerFacts): Cause | undefined {
  const floor = brokerVersionMin.join(".");
  const remedy = `Install NATS ${floor} or later on every server; 2.15 is recommended.`;
  if (!isAtLeast(facts.version, brokerVersionMin)) {
    return cause("BrokerTooOld", `The server runs NATS ${facts.version}, and ${floor} is the oldest that has every feature in use. ${remedy}`);
  }
  if (facts.apiLevel >= brokerApiLevelMin) return undefined;
  const levels = `JetStream answers with API level ${String(facts.apiLevel)}, and ${String(brokerApiLevelMin)} is needed`;
  return cause("BrokerTooOld", `${levels}: some server of the cluster is older. ${remedy}`);
}

/** An edited list of servers must not build an empty twin of the topology in another account. */
function accountObjection(spec: DurableTimerSpec, facts: BrokerFacts): Cause | undefined {
  const wanted = spec.nats.accountName;
  if (wanted === undefined || wanted === facts.accountName) return undefined;
  if (facts.accountName === undefined) {
    const remedy = "Allow the operator's user to publish to $SYS.REQ.USER.INFO, or remove the guard.";
    return cause("AccountUnknown", `spec.nats.accountName guards the account ${wanted}, and the broker does not tell which one this is. ${remedy}`);
  }
  const text = `The connection belongs to the account ${facts.accountName}, and spec.nats.accountName allows only ${wanted}. Nothing was touched.`;
  return cause("WrongAccount", `${text} Correct the servers or the credentials.`);
}

/** Some servers accept more replicas than they can hold on an update and do not start afterwards. */
function replicasObjection(spec: DurableTimerSpec, facts: BrokerFacts): Cause | undefined {
  const serverCount = facts.isClustered ? facts.serverCount : 1;
  const wanted = spec.topology.replicas;
  if (serverCount === undefined || wanted <= serverCount) return undefined;
  const have = serverCount === 1 ? "is a single server" : `has ${String(serverCount)} servers`;
  return cause("ReplicasExceedCluster", `spec.topology.replicas is ${String(wanted)}, and the broker ${have}. Add servers, or ask for fewer replicas.`);
}

function payloadNote(spec: DurableTimerSpec, facts: BrokerFacts): string {
  const largest = facts.payloadBytesMax - payloadHeadroomBytes;
  if (largest >= spec.limits.payloadBytesMax) return "";
  return `The broker's max_payload lowers the largest start to ${String(Math.max(0, largest))} bytes.`;
}

function judgeCredentials({ connection, resource }: Observed, failure?: FailureFact): WantedCondition {
  if (connection.kind === "missing") return want("CredentialsValid", "False", cause("CredentialsMissing", problemText(connection.problems)));
  if (failure !== undefined) {
    const { reason, remedy } = shownFailure(failure.code, "BrokerReachable");
    const isAboutThem = reason === "CredentialsRefused" || reason === "CredentialsInvalid" || reason === "CredentialsMissing";
    if (isAboutThem) return want("CredentialsValid", "False", cause(reason, failureMessage(failure, remedy)));
    return want("CredentialsValid", "Unknown", cause("BrokerUnreachable"));
  }
  if (!workersShareIdentity(resource.spec)) return want("CredentialsValid", "True", cause("CredentialsValid"));
  const note = "The workers use the operator's own credentials, which have more rights than they need. Set spec.workers.auth.";
  return want("CredentialsValid", "True", cause("WorkersShareCredentials", note));
}

/** Compares the numbers of a version; what follows them (a pre-release mark) is not looked at. */
function isAtLeast(version: string, floor: readonly [number, number, number]): boolean {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
  if (numbers === undefined) return false;
  for (const [index, wanted] of floor.entries()) {
    const has = numbers[index] ?? 0;
    if (has !== wanted) return has > wanted;
  }
  return true;
}

function problemText(problems: readonly string[]): string {
  return [...problems].sort().join(" ");
}

const unknownCompatibility = want("BrokerCompatible", "Unknown", cause("BrokerUnreachable"));

/** What this judge decides. */
const brokerTypes = ["BrokerReachable", "BrokerCompatible", "CredentialsValid"] as const;
