import { describe, expect, it } from "vitest";
import { brokerLossGraceMs, lookAgainMs } from "../../../src/base/limits.ts";
import type { DurationMs } from "../../../src/base/units.ts";
import type { FailureFact, Observed } from "../../../src/operator/plan/observed.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { check, empty, outage, settled, unreached, withBroker, withData, withFacts, withSpec, withWorkers } from "./scenes.ts";
import type { Row } from "./scenes.ts";

const lostBroker = [
  "TopologyReady Unknown BrokerUnreachable", "WorkersReady Unknown BrokerUnreachable", "ResumeOpen Unknown BrokerUnreachable",
  "AdmissionOpen Unknown BrokerUnreachable", "ReplicasHealthy Unknown BrokerUnreachable", "CapacityOK Unknown BrokerUnreachable",
];

const silence: FailureFact = { kind: "transient", code: "CLUSTER_UNREACHABLE", message: "read Secret dt-operator" };
const refusal: FailureFact = { kind: "denied", code: "CLUSTER_DENIED", message: "read Secret dt-operator" };

/** The cluster does not say what the connection is made of, and there is no session. */
function unresolved({ broker: _broker, ...scene }: Observed, failure: FailureFact, failedForMs: number): Observed {
  return { ...scene, connection: { kind: "failed", failure, failedForMs: failedForMs as DurationMs } };
}

const unseen = ["BrokerReachable", "BrokerCompatible", "TopologyReady", "WorkersReady", "ResumeOpen"].map((type) => `${type} Unknown NotObserved`);
const unseenBeside = ["AdmissionOpen", "ReplicasHealthy", "CapacityOK", "CredentialsValid", "InSync"].map((type) => `${type} Unknown NotObserved`);

describe("the broker", () => {
  const compatFalse = (reason: string): readonly string[] => [
    `Ready False ${reason}`, `BrokerCompatible False ${reason}`, "TopologyReady Unknown WaitingForBroker", "ResumeOpen Unknown WaitingForBroker", `Stalled True ${reason}`,
    "AdmissionOpen Unknown WaitingForBroker", "ReplicasHealthy Unknown WaitingForBroker", "CapacityOK Unknown WaitingForBroker", "InSync Unknown WaitingForBroker",
  ];
  const rows: readonly Row[] = [
    { name: "a loss shorter than the grace flips nothing", scene: () => unreached(settled(), outage, 10_000), actions: [], turns: [], requeueAfterMs: brokerLossGraceMs - 10_000, because: "the broker is usually back before anyone could act" },
    {
      name: "a longer loss makes the other gates Unknown",
      scene: () => unreached(settled(), outage, 30_000),
      actions: [],
      turns: ["Ready Unknown BrokerUnreachable", "BrokerReachable False BrokerUnreachable", "BrokerCompatible Unknown BrokerUnreachable", ...lostBroker.slice(0, 3), "Reconciling True BrokerUnreachable", ...lostBroker.slice(3), "CredentialsValid Unknown BrokerUnreachable", "InSync Unknown BrokerUnreachable"],
      because: "not knowing is not the same as knowing that timers do not run",
    },
    {
      name: "a broker that was never reached is shown at once",
      scene: () => unreached(empty(), outage, 0),
      actions: [],
      turns: [
        "Ready Unknown BrokerUnreachable", "BrokerReachable False BrokerUnreachable", "BrokerCompatible Unknown BrokerUnreachable", ...lostBroker.slice(0, 3),
        "Reconciling True BrokerUnreachable", ...lostBroker.slice(3), "CredentialsValid Unknown BrokerUnreachable", "InSync Unknown BrokerUnreachable", "Paused False NotPaused",
      ],
      because: "the grace protects a state that was good",
    },
    {
      name: "refused credentials are shown at once",
      scene: () => unreached(settled(), { kind: "denied", code: "BROKER_AUTH", message: "connect" }, 1_000),
      actions: [],
      turns: [
        "Ready Unknown CredentialsRefused", "BrokerReachable False CredentialsRefused", "BrokerCompatible Unknown BrokerUnreachable", ...lostBroker.slice(0, 3),
        "Reconciling True CredentialsRefused", ...lostBroker.slice(3), "CredentialsValid False CredentialsRefused", "InSync Unknown BrokerUnreachable",
      ],
      because: "a definite answer needs no grace",
    },
    {
      name: "JetStream that is off is an incompatible broker",
      scene: () => unreached(settled(), { kind: "denied", code: "JETSTREAM_DISABLED", message: "ask for the account" }, 0),
      actions: [],
      turns: [...compatFalse("JetStreamDisabled").slice(0, 8), "CredentialsValid Unknown BrokerUnreachable", "InSync Unknown WaitingForBroker"],
      because: "the server was reached and can never do the work",
    },
    { name: "a server below the floor is refused", scene: () => withFacts(settled(), { version: "2.14.3" }), actions: [], turns: compatFalse("BrokerTooOld"), because: "older servers lose schedules" },
    { name: "a server at the floor is accepted", scene: () => withFacts(settled(), { version: "2.14.4", apiLevel: 4 }), actions: [], turns: [], because: "the floor is inclusive" },
    { name: "a pre-release above the floor is accepted", scene: () => withFacts(settled(), { version: "2.15.0-RC.1" }), actions: [], turns: [], because: "only the numbers count" },
    { name: "a version that cannot be read is refused", scene: () => withFacts(settled(), { version: "dev" }), actions: [], turns: compatFalse("BrokerTooOld"), because: "what is not known to work is not used" },
    { name: "a cluster with an older server is refused", scene: () => withFacts(settled(), { apiLevel: 3 }), actions: [], turns: compatFalse("BrokerTooOld"), because: "the API level is the lowest of the cluster" },
    { name: "the guarded account is accepted", scene: () => settled({ nats: { accountName: "PAYMENTS" } }), actions: [], turns: [], because: "the guard names this account" },
    { name: "another account is not touched", scene: () => ({ ...withFacts(settled({ nats: { accountName: "PAYMENTS" } }), { accountName: "OTHER" }) }), actions: [], turns: compatFalse("WrongAccount"), because: "an edited server list must not build an empty twin" },
    {
      name: "an account that does not tell its name is not touched under a guard",
      scene: () => withBroker(settled({ nats: { accountName: "PAYMENTS" } }), (broker) => ({ ...broker, facts: { ...broker.facts, accountName: undefined as never } })),
      actions: [], turns: compatFalse("AccountUnknown"), because: "a guard that cannot be checked does not hold",
    },
    { name: "more replicas than a single server holds are refused", scene: () => withFacts(settled({ topology: { replicas: 3 } }), { isClustered: false }), actions: [], turns: compatFalse("ReplicasExceedCluster"), because: "some servers accept it and do not start afterwards" },
    { name: "more replicas than servers are refused", scene: () => withFacts(settled({ topology: { replicas: 3 } }), { serverCount: 2 }), actions: [], turns: compatFalse("ReplicasExceedCluster"), because: "the cluster cannot place them" },
    {
      name: "missing credentials are named",
      scene: () => { const { broker: _broker, ...scene } = empty(); return { ...scene, connection: { kind: "missing", problems: ["Secret dt-operator does not exist."] } }; },
      actions: [],
      turns: [
        "Ready Unknown CredentialsMissing", "BrokerReachable False CredentialsMissing", "BrokerCompatible Unknown BrokerUnreachable",
        ...["TopologyReady", "WorkersReady", "ResumeOpen"].map((type) => `${type} Unknown CredentialsMissing`), "Reconciling True CredentialsMissing",
        ...["AdmissionOpen", "ReplicasHealthy", "CapacityOK"].map((type) => `${type} Unknown CredentialsMissing`),
        "CredentialsValid False CredentialsMissing", "InSync Unknown CredentialsMissing", "Paused False NotPaused",
      ],
      because: "the Secret may be applied a moment later: patience, not a person",
    },
    { name: "a Secret that went does not end a session", scene: () => ({ ...settled(), connection: { kind: "missing", problems: ["Secret dt-operator does not exist."] } }), actions: [], turns: ["CredentialsValid False CredentialsMissing"], because: "the open connection still works" },
    { name: "a cluster that does not tell its Secrets changes nothing", scene: () => unresolved(settled(), silence, 0), actions: [], turns: [], requeueAfterMs: lookAgainMs, because: "the broker may be well" },
    {
      name: "a cluster that goes on not telling its Secrets makes the gates Unknown",
      scene: () => unresolved(settled(), silence, brokerLossGraceMs),
      actions: [],
      turns: ["Ready Unknown NotObserved", ...unseen, "Reconciling True NotObserved", ...unseenBeside],
      requeueAfterMs: lookAgainMs,
      because: "what nobody looks at is not known to be well",
    },
    {
      name: "a cluster that never told its Secrets is shown at once",
      scene: () => unresolved(empty(), silence, 0),
      actions: [],
      turns: ["Paused False NotPaused"],
      requeueAfterMs: lookAgainMs,
      because: "there is no good state to protect, and it is Unknown already",
    },
    {
      name: "a cluster that forbids to read its Secrets is shown at once, and needs a person",
      scene: () => unresolved(settled(), refusal, 0),
      actions: [],
      turns: [
        "Ready Unknown PermissionDenied", "BrokerReachable False PermissionDenied", "BrokerCompatible Unknown BrokerUnreachable",
        ...["TopologyReady", "WorkersReady", "ResumeOpen"].map((type) => `${type} Unknown PermissionDenied`), "Stalled True PermissionDenied",
        ...["AdmissionOpen", "ReplicasHealthy", "CapacityOK"].map((type) => `${type} Unknown PermissionDenied`),
        "CredentialsValid False PermissionDenied", "InSync Unknown PermissionDenied",
      ],
      because: "no patience grants the operator a right",
    },
    { name: "workers are corrected although the broker is away", scene: () => withWorkers(unreached(settled(), outage, 10_000), { drift: ["image"] }), actions: ["Update the workers (image)"], turns: ["Reconciling True WorkersProgressing"], requeueAfterMs: brokerLossGraceMs - 10_000, because: "a fix of credentials or image must still roll" },
    { name: "shared credentials are pointed out", scene: () => withSpec(settled(), { nats: { auth: { credentialsSecretRef: { name: "dt" } } } }), actions: [], turns: ["CredentialsValid True WorkersShareCredentials"], because: "workers need fewer rights than the operator" },
    { name: "an empty auth of the workers shares credentials too", scene: () => withSpec(settled(), { nats: { auth: { credentialsSecretRef: { name: "dt" } } }, workers: { auth: {} } }), actions: [], turns: ["CredentialsValid True WorkersShareCredentials"], because: "it names no identity, so that they get the operator's" },
    { name: "an empty auth shares nothing", scene: () => withSpec(settled(), { nats: { auth: {} } }), actions: [], turns: [], because: "there is no identity to share" },
    { name: "a small max_payload is accepted and told", scene: () => withFacts(settled(), { payloadBytesMax: 65_536 }), actions: [], turns: [], because: "it lowers our limit, which is not a fault" },
  ];
  it.each(rows)("$name", check);

  it("says what failed in the cluster, and what to do about a refusal", () => {
    const message = (scene: Observed, wanted: string): string | undefined => plan(scene).status.conditions?.find(({ type }) => type === wanted)?.message;
    expect(message(unresolved(empty(), silence, 0), "Ready")).toBe("read Secret dt-operator.");
    expect(message(unresolved(settled(), refusal, 0), "CredentialsValid")).toBe("read Secret dt-operator. Let the operator's role read the Secrets that spec.nats names.");
  });

  it("says what a small max_payload leaves", () => {
    const { status } = plan(withFacts(settled(), { payloadBytesMax: 65_536 }));
    expect(status.conditions?.find(({ type }) => type === "BrokerCompatible")?.message).toBe("The broker's max_payload lowers the largest start to 32768 bytes.");
  });

  it("keeps what the status remembers while the broker is away", () => {
    const scene = withData(settled());
    const { conditions: _before, ...had } = scene.resource.status ?? { conditions: [] };
    const { conditions: _after, ...has } = plan(unreached(scene, outage, 60_000)).status;
    expect(has).toEqual(had);
  });
});
