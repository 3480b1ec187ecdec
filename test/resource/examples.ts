/**
 * Specs that are accepted and specs that are refused, for every reader of them: parseSpec, and the API server with the
 * generated CRD. The two must agree on each row, or local mode and clusters would be two products.
 */

import type { DurableTimerSpecInput } from "../../src/resource/spec.ts";

/** The least that a person must write. */
export const smallestSpec: DurableTimerSpecInput = {
  nats: { servers: ["nats://nats.example:4222"] },
  topology: {
    streams: {
      state: { maxBytes: "10Gi" },
      commands: { maxBytes: "2Gi" },
      feedback: { maxBytes: "2Gi" },
      snapshots: { maxBytes: "40Gi" },
      terminals: { maxBytes: "20Gi" },
      resumes: { maxBytes: "2Gi" },
    },
  },
};

/** A spec that gives every field a value of its own. */
export const fullSpec = {
  nats: {
    servers: ["tls://nats-0.nats.example:4222", "tls://nats-1.nats.example:4222"],
    accountName: "PAYMENTS",
    jetStreamDomain: "hub",
    tls: { caSecretRef: { name: "nats-ca", key: "root.crt" }, clientCertSecretRef: { name: "dt-tls" }, handshakeFirst: true },
    auth: { credentialsSecretRef: { name: "dt-operator", key: "operator.creds" } },
    replyPrefix: "_INBOX.payments",
  },
  topology: {
    replicas: 3,
    placement: { cluster: "eu-1", tags: ["ssd", "zone:a"] },
    streams: {
      state: { maxBytes: "1.5Gi" },
      commands: { maxBytes: 2_147_483_648 },
      feedback: { maxBytes: "2G" },
      snapshots: { maxBytes: "4e10" },
      terminals: { maxBytes: "20Gi" },
      resumes: { maxBytes: "2097152" },
    },
    adoption: { policy: "FromOwner", fromOwner: "0d3e/payments/old-orders" },
  },
  limits: { payloadBytesMax: 65_536, delaySecondsMax: 86_400, retriesMax: 3 },
  admission: { state: "Closed", closePercent: 90, reopenPercent: 50 },
  resume: { state: "Paused", ackWaitSeconds: 30, maxAckPending: 10 },
  feedback: { timeoutSeconds: 600, onTimeout: "ResumeAgain" },
  sweep: { intervalSeconds: 60, graceSeconds: 2 },
  retention: { archive: { policy: "Expire", afterSeconds: 2_592_000, dedupeSeconds: 604_800 } },
  workers: {
    replicas: 5,
    image: "registry.example/durable-timer@sha256:ab",
    imagePullPolicy: "Always",
    auth: { userPasswordSecretRef: { name: "dt-worker", userKey: "user", passwordKey: "pass" } },
    maxAckPending: 500,
    resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: 2, memory: "1Gi" } },
    terminationGracePeriodSeconds: 60,
    minReadySeconds: 10,
    progressDeadlineSeconds: 120,
    podTemplate: {
      metadata: { labels: { team: "payments" }, annotations: { "example.com/note": "kept" } },
      spec: {
        serviceAccountName: "payments",
        imagePullSecrets: [{ name: "registry" }],
        priorityClassName: "high",
        nodeSelector: { disk: "ssd" },
        tolerations: [{ key: "dedicated", operator: "Exists" }],
        affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
        topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }],
        env: [{ name: "TZ", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
        volumes: [{ name: "scratch", emptyDir: {} }],
        volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
        securityContext: { runAsUser: 1000 },
      },
    },
  },
  deletionPolicy: "Delete",
  acknowledge: ["lost-state-9f2a"],
};

export type SpecExample = {
  readonly name: string;
  /** A JSON merge patch over the smallest spec: null removes a field. */
  readonly patch: Patch;
  /** The field that is reported, from `spec` on; absent when the spec is accepted. */
  readonly field?: string;
  readonly because: string;
};

export type ChangeExample = SpecExample & { readonly from: Patch };

export type Patch = { readonly [field: string]: unknown };

export const specExamples: readonly SpecExample[] = [
  { name: "the smallest spec", patch: {}, because: "everything else has a default or is optional" },
  { name: "the full spec", patch: fullSpec, because: "every documented field is known" },
  {
    name: "empty text where nothing is meant",
    patch: { topology: { adoption: { fromOwner: "" } }, workers: { image: "", podTemplate: { spec: { serviceAccountName: "", priorityClassName: "" } } } },
    because: "templates render values that were not given as empty text",
  },
  { name: "no servers", patch: { nats: { servers: [] } }, field: "spec.nats.servers", because: "there is nothing to connect to" },
  { name: "a server without a scheme", patch: { nats: { servers: ["nats.example:4222"] } }, field: "spec.nats.servers[0]", because: "the scheme says whether TLS is required" },
  {
    name: "a server with a password",
    patch: { nats: { servers: ["nats://user:pass@nats.example:4222"] } },
    field: "spec.nats.servers[0]",
    because: "resources are readable by many; secrets belong in a Secret",
  },
  {
    name: "two identities of the operator",
    patch: { nats: { auth: { tokenSecretRef: { name: "a" }, nkeySecretRef: { name: "b" } } } },
    field: "spec.nats.auth",
    because: "which of them counts would be a guess",
  },
  {
    name: "two identities of the workers",
    patch: { workers: { auth: { credentialsSecretRef: { name: "a" }, userPasswordSecretRef: { name: "b" } } } },
    field: "spec.workers.auth",
    because: "which of them counts would be a guess",
  },
  { name: "auth without any identity", patch: { nats: { auth: {} } }, because: "it says no more than leaving auth out" },
  { name: "a reply prefix with a wildcard", patch: { nats: { replyPrefix: "_INBOX.>" } }, field: "spec.nats.replyPrefix", because: "replies would go anywhere" },
  { name: "two replicas", patch: { topology: { replicas: 2 } }, field: "spec.topology.replicas", because: "two copies have no majority when one is lost" },
  { name: "seven replicas", patch: { topology: { replicas: 7 } }, field: "spec.topology.replicas", because: "servers keep at most five copies" },
  { name: "five replicas", patch: { topology: { replicas: 5 } }, because: "five is the largest" },
  {
    name: "no size for the archive",
    patch: { topology: { streams: { terminals: null } } },
    field: "spec.topology.streams.terminals",
    because: "a default would be wrong for everybody",
  },
  {
    name: "a size below one message",
    patch: { topology: { streams: { commands: { maxBytes: "1Mi" } } } },
    field: "spec.topology.streams.commands.maxBytes",
    because: "a largest start would never fit",
  },
  {
    name: "a size as a small number",
    patch: { topology: { streams: { state: { maxBytes: 10 } } } },
    field: "spec.topology.streams.state.maxBytes",
    because: "ten bytes are a forgotten unit",
  },
  {
    name: "a size beyond exact numbers",
    patch: { topology: { streams: { state: { maxBytes: "8Pi" } } } },
    field: "spec.topology.streams.state.maxBytes",
    because: "it would be rounded on its way to the server",
  },
  {
    name: "a size that is no quantity",
    patch: { topology: { streams: { state: { maxBytes: "10 GB" } } } },
    field: "spec.topology.streams.state.maxBytes",
    because: "it has no meaning in Kubernetes",
  },
  {
    name: "an adoption that does not say from whom",
    patch: { topology: { adoption: { policy: "FromOwner" } } },
    field: "spec.topology.adoption.fromOwner",
    because: "taking over from anybody is never meant",
  },
  { name: "an unknown adoption policy", patch: { topology: { adoption: { policy: "Always" } } }, field: "spec.topology.adoption.policy", because: "the list is closed" },
  {
    name: "a payload limit above what a message holds",
    patch: { limits: { payloadBytesMax: 1_000_001 } },
    field: "spec.limits.payloadBytesMax",
    because: "headers must fit beside the body",
  },
  {
    name: "admission that reopens where it closes",
    patch: { admission: { closePercent: 80, reopenPercent: 80 } },
    field: "spec.admission.reopenPercent",
    because: "without a distance it would open and close at every message",
  },
  {
    name: "admission that closes below the default of reopening",
    patch: { admission: { closePercent: 70 } },
    field: "spec.admission.reopenPercent",
    because: "defaults take part in the rules",
  },
  { name: "a feedback timeout below five minutes", patch: { feedback: { timeoutSeconds: 299 } }, field: "spec.feedback.timeoutSeconds", because: "the sweep finds it, and the first resume's message id must be forgotten" },
  { name: "an unknown policy for unanswered timers", patch: { feedback: { onTimeout: "Retry" } }, field: "spec.feedback.onTimeout", because: "a misspelt policy must not count as None" },
  {
    name: "a sweep grace as long as its interval",
    patch: { sweep: { intervalSeconds: 60, graceSeconds: 60 } },
    field: "spec.sweep.graceSeconds",
    because: "the sweep would look at a late timer one interval too late",
  },
  { name: "a sweep all the time", patch: { sweep: { intervalSeconds: 4, graceSeconds: 1 } }, field: "spec.sweep.intervalSeconds", because: "it reads all state each time" },
  {
    name: "ended timers that expire after an hour and are recognised for another", because: "the shortest of both",
    patch: { retention: { archive: { policy: "Expire", afterSeconds: 3_600, dedupeSeconds: 3_600 } } },
  },
  {
    name: "expiring archives without saying when", patch: { retention: { archive: { policy: "Expire", dedupeSeconds: 3_600 } } },
    field: "spec.retention.archive.afterSeconds", because: "nobody but the user knows how long ended timers are asked for",
  },
  {
    name: "expiring archives without saying how long their starts are recognised", patch: { retention: { archive: { policy: "Expire", afterSeconds: 3_600 } } },
    field: "spec.retention.archive.dedupeSeconds", because: "nobody but the user knows how long a start may be under way",
  },
  {
    name: "archives that expire within the hour", patch: { retention: { archive: { policy: "Expire", afterSeconds: 3_599, dedupeSeconds: 3_600 } } },
    field: "spec.retention.archive.afterSeconds", because: "markers and writes of an ended timer have to be gone",
  },
  {
    name: "starts that are recognised for less than an hour", patch: { retention: { archive: { policy: "Expire", afterSeconds: 3_600, dedupeSeconds: 3_599 } } },
    field: "spec.retention.archive.dedupeSeconds", because: "markers and message ids of the old timer have to be gone",
  },
  { name: "times for archives that are kept", patch: { retention: { archive: { policy: "Keep", afterSeconds: 3_600 } } }, because: "switching it off must not ask to forget them" },
  {
    name: "an unknown policy for archives", patch: { retention: { archive: { policy: "Delete" } } },
    field: "spec.retention.archive.policy", because: "a misspelt policy must not remove anything",
  },
  { name: "no workers", patch: { workers: { replicas: 0 } }, because: "scaling to zero is a way to stop" },
  { name: "half a worker", patch: { workers: { replicas: 1.5 } }, field: "spec.workers.replicas", because: "counts are whole" },
  {
    name: "a rollout that is stuck before a worker can be ready",
    patch: { workers: { minReadySeconds: 600 } },
    field: "spec.workers.progressDeadlineSeconds",
    because: "Kubernetes refuses such a Deployment",
  },
  {
    name: "a pod that sets the worker's own variable",
    patch: { workers: { podTemplate: { spec: { env: [{ name: "DURABLE_TIMER_WORKER_CONFIG", value: "{}" }] } } } },
    field: "spec.workers.podTemplate.spec.env",
    because: "template and configuration would diverge",
  },
  {
    name: "a variable without a name",
    patch: { workers: { podTemplate: { spec: { env: [{ value: "1" }] } } } },
    field: "spec.workers.podTemplate.spec.env[0].name",
    because: "Kubernetes would refuse the pods, which is later and harder to find",
  },
  {
    name: "a request that is no quantity",
    patch: { workers: { resources: { requests: { memory: "lots" } } } },
    field: "spec.workers.resources.requests.memory",
    because: "Kubernetes would refuse the pods, which is later and harder to find",
  },
  {
    name: "seventeen acknowledged incidents",
    patch: { acknowledge: Array.from({ length: 17 }, (_, index) => `incident-${String(index)}`) },
    field: "spec.acknowledge",
    because: "the list is cleaned up by the person who fills it",
  },
];

export const changeExamples: readonly ChangeExample[] = [
  { name: "nothing", from: {}, patch: {}, because: "an unchanged spec is always possible" },
  { name: "adding a domain", from: {}, patch: { nats: { jetStreamDomain: "hub" } }, field: "spec.nats.jetStreamDomain", because: "the streams live in another one" },
  {
    name: "removing a domain",
    from: { nats: { jetStreamDomain: "hub" } },
    patch: {},
    field: "spec.nats.jetStreamDomain",
    because: "the streams live in that one",
  },
  {
    name: "another domain",
    from: { nats: { jetStreamDomain: "hub" } },
    patch: { nats: { jetStreamDomain: "leaf" } },
    field: "spec.nats.jetStreamDomain",
    because: "the streams live in the first one",
  },
  { name: "the same domain", from: { nats: { jetStreamDomain: "hub" } }, patch: { nats: { jetStreamDomain: "hub", accountName: "A" } }, because: "only the domain is fixed" },
  { name: "one replica to three", from: {}, patch: { topology: { replicas: 3 } }, because: "the operator makes the stream of schedules anew" },
  { name: "three replicas to one", from: { topology: { replicas: 3 } }, patch: { topology: { replicas: 1 } }, because: "replicated streams shrink in place" },
  { name: "three replicas to five", from: { topology: { replicas: 3 } }, patch: { topology: { replicas: 5 } }, because: "replicated streams grow in place" },
  { name: "other servers", from: {}, patch: { nats: { servers: ["tls://other.example:4222"] } }, because: "a NATS system may move" },
  {
    name: "a larger stream",
    from: {},
    patch: { topology: { streams: { state: { maxBytes: "20Gi" } } } },
    because: "sizes change in place",
  },
];

/** The smallest spec with a JSON merge patch applied. */
export function patched(patch: Patch): Patch {
  return merge(smallestSpec, patch);
}

function merge(target: Patch, patch: Patch): Patch {
  const entries = Object.entries(patch).map(([key, value]) => [key, isObject(value) && isObject(target[key]) ? merge(target[key], value) : value] as const);
  const all = { ...target, ...Object.fromEntries(entries) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}

function isObject(value: unknown): value is Patch {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
