import { describe, expect, it } from "vitest";
import { deletionPatienceMs, lookAgainMs } from "../../../src/base/limits.ts";
import type { EpochMs } from "../../../src/base/units.ts";
import type { Observed, ObservedResource } from "../../../src/operator/plan/observed.ts";
import { statedPauseUntilMs } from "../../../src/operator/plan/pauses.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { streamsFinalizer } from "../../../src/resource/names.ts";
import { absent, actionTexts, check, empty, found, nowMs, outage, paused, readyWorkers, settled, spec, stamp, unreached, withBroker, withConsumer, withData, withFacts, withMetadata, withStream, withWorkers } from "./scenes.ts";
import type { ReachedBroker, Row } from "./scenes.ts";

const withResource = (observed: Observed, change: Partial<ObservedResource>): Observed => ({ ...observed, resource: { ...observed.resource, ...change } });
const held = { finalizers: [streamsFinalizer] };
const isDeleted = { ...held, isDeletionRequested: true, deletionRequestedAtMs: nowMs };
/** The policy is Delete, and the resource is being deleted. */
const deleted = (observed: Observed = settled({ deletionPolicy: "Delete" }), change: Partial<ObservedResource> = {}): Observed => withResource(observed, { ...isDeleted, ...change });
const full = (): Observed => deleted(withData(settled({ deletionPolicy: "Delete" })));
const stopped = (observed: Observed): Observed => withWorkers(observed, { ...readyWorkers(0), templateHash: "5d8f" });
const idOf = (observed: Observed): string => plan(observed).status.incidents?.[0]?.id ?? "none";
const accepted = (observed: Observed): Observed => withResource(observed, { spec: spec({ deletionPolicy: "Delete", acknowledge: [idOf(observed)] }) });

const letGo = ["Let go of the resource"];
const names = ["DURABLE_TIMER_FEEDBACK", "DURABLE_TIMER_RESUMES", "DURABLE_TIMER_SCHEDULES", "DURABLE_TIMER_TERMINALS", "DURABLE_TIMER_SNAPSHOTS", "KV_DURABLE_TIMER_STATE"];
const deleting = ["Ready False Deleting", "Reconciling True Deleting"];
const refused = ["Ready False Deleting", "Stalled True TimersWaiting", "AdmissionOpen False ClosedByIncident"];
const hold = "Pause consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS until 2200-01-01T00:00:00.000Z";

describe("the finalizer", () => {
  const rows: readonly Row[] = [
    { name: "is not put on a resource that retains its streams", scene: () => withResource(settled(), { finalizers: [] }), actions: [], turns: [], because: "a finalizer that has nothing to do only gets in the way" },
    { name: "is put on before anything else when the policy is Delete", scene: () => withResource(empty({ deletionPolicy: "Delete" }), { finalizers: [] }), actions: ["Hold the resource until its streams are deleted"], turns: ["Ready False Provisioning", "BrokerReachable True Connected", "BrokerCompatible True Compatible", "TopologyReady False Provisioning", "WorkersReady False WaitingForTopology", "ResumeOpen False WaitingForTopology", "Reconciling True Provisioning", "CredentialsValid True CredentialsValid", "InSync False Provisioning", "Paused False NotPaused"], because: "streams that nobody would delete must not be made" },
    { name: "is there already", scene: () => withResource(settled({ deletionPolicy: "Delete" }), held), actions: [], turns: [], because: "as desired" },
    { name: "is taken off when the policy is Retain again", scene: () => withResource(settled(), held), actions: letGo, turns: [], because: "nothing is to be deleted any more" },
    { name: "is left alone while the resource is paused", scene: () => withResource(settled({ deletionPolicy: "Delete" }), { finalizers: [], annotations: { "durabletimer.dev/paused": "true" } }), actions: [], turns: ["Paused True PausedByAnnotation"], because: "a pause changes nothing" },
    { name: "does not exist in local mode", scene: () => settled({ deletionPolicy: "Delete" }), actions: [], turns: [], because: "a file holds nothing in deletion" },
  ];
  it.each(rows)("$name", check);
});

describe("a deletion", () => {
  const rows: readonly Row[] = [
    { name: "without the finalizer does nothing", scene: () => withResource(settled(), { isDeletionRequested: true, finalizers: ["example.com/other"] }), actions: [], turns: deleting, because: "the streams stay, and the workers go by their owner" },
    { name: "stops the workers first", scene: () => deleted(), actions: ["Update the workers (replicas)"], turns: deleting, requeueAfterMs: lookAgainMs, because: "they would write into what is being deleted" },
    { name: "waits for the workers to end", scene: () => deleted(withWorkers(settled({ deletionPolicy: "Delete" }), { wantedReplicas: 0, replicas: 1 })), actions: [], turns: deleting, requeueAfterMs: lookAgainMs, because: "they finish what they hold" },
    { name: "closes the door alone", scene: () => stopped(deleted()), actions: ["Delete stream DURABLE_TIMER_COMMANDS"], turns: deleting, requeueAfterMs: lookAgainMs, because: "the next look tells whether a start slipped in" },
    { name: "then deletes the rest, the claim last", scene: () => withStream(stopped(deleted()), "commands", undefined), actions: names.map((name) => `Delete stream ${name}`), turns: deleting, requeueAfterMs: lookAgainMs, because: "a deletion that is cut off is continued by whoever still owns STATE" },
    { name: "lets go when nothing is left", scene: () => deleted(withBroker(stopped(settled({ deletionPolicy: "Delete" })), nothing)), actions: letGo, turns: deleting, requeueAfterMs: lookAgainMs, because: "it is done" },
    { name: "is refused while timers wait, and the timers go on", scene: full, actions: [hold], turns: refused, requeueAfterMs: lookAgainMs, because: "a mistaken delete must not stop what people wait for" },
    { name: "that is refused holds starts only once", scene: () => withConsumer(full(), "start", paused(statedPauseUntilMs)), actions: [], turns: refused, requeueAfterMs: lookAgainMs, because: "as desired" },
    { name: "is refused for a start that waits, too", scene: () => deleted(withStream(settled({ deletionPolicy: "Delete" }), "commands", (stream) => ({ ...stream, messages: 1, lastSequence: 1 }))), actions: [hold], turns: refused, requeueAfterMs: lookAgainMs, because: "it was acknowledged" },
    { name: "goes on once a person acknowledged what it deletes", scene: () => accepted(full()), actions: ["Update the workers (replicas)"], turns: deleting, requeueAfterMs: lookAgainMs, because: "a person decided" },
    { name: "goes on to the end with what waits", scene: () => withStream(stopped(accepted(full())), "commands", undefined), actions: names.map((name) => `Delete stream ${name}`), turns: deleting, requeueAfterMs: lookAgainMs, because: "the id is bound to the life of the resource and of STATE, not to what is left" },
    { name: "does not take an id of another life", scene: () => withResource(accepted(full()), { uid: "uid-2" }), actions: [hold], turns: refused, requeueAfterMs: lookAgainMs, because: "that one spoke of the resource before" },
    { name: "becomes Retain in a namespace that is being deleted", scene: () => deleted(full(), { isNamespaceEnding: true }), actions: letGo, turns: deleting, requeueAfterMs: lookAgainMs, because: "whoever deletes a namespace seldom thinks of the timers in another system" },
    { name: "becomes Retain when the policy is changed meanwhile", scene: () => deleted(withData(settled())), actions: letGo, turns: deleting, requeueAfterMs: lookAgainMs, because: "the way out of a mistaken delete" },
    { name: "is processed although the resource is paused", scene: () => deleted(undefined, { annotations: { "durabletimer.dev/paused": "true" } }), actions: ["Update the workers (replicas)"], turns: ["Ready False Deleting", "Paused True PausedByAnnotation"], requeueAfterMs: lookAgainMs, because: "a paused resource must not hold up its namespace" },
    { name: "waits a while for a broker that is away", scene: () => unreached(full(), outage, 60_000), actions: [], turns: deleting, requeueAfterMs: lookAgainMs, because: "it may come back" },
    { name: "never hangs on a broker that is gone", scene: () => late(unreached(full(), outage, 600_000)), actions: letGo, turns: deleting, requeueAfterMs: lookAgainMs, because: "what cannot be reached stays" },
    { name: "never hangs on a Secret that is gone", scene: () => late(withoutBroker(full())), actions: letGo, turns: deleting, requeueAfterMs: lookAgainMs, because: "the order of an uninstall does not matter" },
    { name: "waits a while for a Secret", scene: () => withoutBroker(full()), actions: [], turns: deleting, requeueAfterMs: lookAgainMs, because: "it may be replaced just now" },
    { name: "waits for a stream that does not answer", scene: () => withBroker(full(), (broker) => ({ ...broker, streams: { ...broker.streams, terminals: { kind: "failed", failure: outage } } })), actions: [], turns: deleting, requeueAfterMs: lookAgainMs, because: "it may be ours" },
    { name: "touches nothing of another owner", scene: () => withMetadata(stopped(deleted()), "state", stamp("c2/a/b")), actions: letGo, turns: deleting, requeueAfterMs: lookAgainMs, because: "the stamp in STATE wins" },
    { name: "touches no stream that was never adopted", scene: () => stopped(deleted(withMetadata(settled({ deletionPolicy: "Delete", topology: { adoption: { policy: "IfUnowned" } } }), "commands", {}))), actions: names.map((name) => `Delete stream ${name}`), turns: deleting, requeueAfterMs: lookAgainMs, because: "nobody's stamp is not ours" },
    { name: "touches nothing on another broker than the one that holds the data", scene: () => withFacts(withBroker(full(), nothing), { accountName: "OTHER" }), actions: letGo, turns: deleting, requeueAfterMs: lookAgainMs, because: "the streams are elsewhere" },
  ];
  it.each(rows)("$name", check);

  it("that leaves the streams says so in an event, with the reason", () => {
    const reasons = [
      plan(deleted(full(), { isNamespaceEnding: true })), plan(late(unreached(full(), outage, 600_000))), plan(withMetadata(stopped(deleted()), "state", stamp("c2/a/b"))),
    ].map(({ events }) => events.find(({ reason }) => reason === "DataRetained")?.message ?? "none");
    expect(reasons.map((text) => text.slice(0, 70))).toEqual([
      "The streams and what they hold stay: the whole namespace is being dele",
      "The streams and what they hold stay: they could not be reached: Broker",
      "The streams and what they hold stay: they are not ours to delete. Stre",
    ]);
  });

  it("that deleted everything says nothing of data that stays", () => {
    const done = deleted(withBroker(stopped(settled({ deletionPolicy: "Delete" })), nothing));
    expect(plan(done).events.map(({ reason }) => reason)).not.toContain("DataRetained");
  });

  it("is not fooled by a record that was removed a moment ago", () => {
    const marked = withBroker(stopped(deleted()), (broker) => ({ ...broker, stateRecord: found({ sequence: 4, isLive: false }) }));
    expect(actionTexts(plan(marked)), "the marker hides whether there are others").toEqual([hold]);
    expect(actionTexts(plan(withBroker(marked, (broker) => ({ ...broker, stateRecord: absent }))))).toEqual(["Delete stream DURABLE_TIMER_COMMANDS"]);
  });
});

/** An account in which there is nothing. */
function nothing(broker: ReachedBroker): ReachedBroker {
  const { broker: bare } = empty();
  return bare?.kind === "reached" ? bare : broker;
}

const late = (observed: Observed): Observed => withResource(observed, { deletionRequestedAtMs: (nowMs - deletionPatienceMs) as EpochMs });

function withoutBroker({ broker: _broker, ...rest }: Observed): Observed {
  return { ...rest, connection: { kind: "missing", problems: ["Secret dt does not exist"] } };
}
