import { describe, expect, it } from "vitest";
import { apiVersion, kind } from "../../src/resource/names.ts";
import { parseManifest, parseSpec } from "../../src/resource/validate.ts";
import { fullSpec, patched, smallestSpec, specExamples } from "./examples.ts";

describe("parseSpec", () => {
  it.each(specExamples)("treats $name as the API server does", ({ patch, field, because }) => {
    const parsed = parseSpec(patched(patch));
    const fields = parsed.ok ? [] : parsed.problems.map((problem) => problem.field);
    expect(fields, because).toEqual(field === undefined ? [] : [field]);
  });

  it("fills in every default", () => {
    const parsed = parseSpec(smallestSpec);
    expect(parsed).toEqual({
      ok: true,
      spec: {
        nats: { servers: ["nats://nats.example:4222"], replyPrefix: "_INBOX.durable_timer" },
        topology: {
          replicas: 1,
          streams: {
            state: { maxBytes: 10 * gib },
            commands: { maxBytes: 2 * gib },
            feedback: { maxBytes: 2 * gib },
            snapshots: { maxBytes: 40 * gib },
            terminals: { maxBytes: 20 * gib },
            resumes: { maxBytes: 2 * gib },
          },
          adoption: { policy: "Own" },
        },
        limits: { payloadBytesMax: 1_000_000, delaySecondsMax: 315_360_000, retriesMax: 1_000 },
        admission: { state: "Open", closePercent: 85, reopenPercent: 75 },
        resume: { state: "Open", ackWaitSeconds: 60, maxAckPending: 1_000 },
        feedback: { timeoutSeconds: 86_400, onTimeout: "None" },
        retention: { archive: { policy: "Keep" } },
        sweep: { intervalSeconds: 300, graceSeconds: 5 },
        workers: {
          replicas: 2,
          imagePullPolicy: "IfNotPresent",
          maxAckPending: 2_000,
          resources: { requests: { cpu: "250m", memory: "256Mi" }, limits: { memory: "512Mi" } },
          terminationGracePeriodSeconds: 45,
          minReadySeconds: 5,
          progressDeadlineSeconds: 600,
        },
        deletionPolicy: "Retain",
        acknowledge: [],
      },
    });
  });

  it("keeps Kubernetes' own shapes in the pod template as they are", () => {
    const parsed = parseSpec(fullSpec);
    expect(parsed.ok && parsed.spec.workers.podTemplate).toEqual(fullSpec.workers.podTemplate);
  });

  it("reads sizes in every spelling as bytes", () => {
    const parsed = parseSpec(fullSpec);
    const streams = parsed.ok ? Object.values(parsed.spec.topology.streams).map(({ maxBytes }) => maxBytes) : [];
    expect(streams).toEqual([1.5 * gib, 2 * gib, 2e9, 4e10, 20 * gib, 2 * 1024 * 1024]);
  });

  it("ignores fields of a newer CRD", () => {
    expect(parseSpec({ ...smallestSpec, quotas: { perFlow: { startsPerSecond: 10 } } }).ok).toBe(true);
  });

  it.each([undefined, null, 1, "spec", [], [[]], { nats: 1, topology: null }, JSON.parse('{"__proto__": {"nats": {}}}') as unknown])(
    "refuses %j without throwing",
    (value) => {
      expect(parseSpec(value).ok).toBe(false);
    },
  );
});

describe("parseManifest", () => {
  const manifest = (changes: object): unknown => ({ apiVersion, kind, metadata: { name: "orders" }, spec: smallestSpec, ...changes });

  it("gives name, annotations and spec", () => {
    const parsed = parseManifest(manifest({ metadata: { name: "orders", namespace: "payments", annotations: { a: "b" } } }));
    expect(parsed).toMatchObject({ ok: true, manifest: { name: "orders", namespace: "payments", labels: {}, annotations: { a: "b" } } });
  });

  const rows = [
    { name: "another kind", changes: { kind: "Timer" }, fields: ["kind"], because: "it is some other resource" },
    { name: "another version", changes: { apiVersion: "durabletimer.dev/v2" }, fields: ["apiVersion"], because: "its fields may mean something else" },
    { name: "no spec", changes: { spec: undefined }, fields: ["spec"], because: "nothing is wanted" },
    { name: "a name in capitals", changes: { metadata: { name: "Orders" } }, fields: ["metadata.name"], because: "Kubernetes would refuse it" },
    { name: "a name of 47 characters", changes: { metadata: { name: "n".repeat(47) } }, fields: ["metadata.name"], because: "names of workers would be too long" },
    { name: "a name of 46 characters", changes: { metadata: { name: "n".repeat(46) } }, fields: [], because: "that is the longest" },
    {
      name: "misspelled fields",
      changes: { metadata: { name: "orders", label: {} }, spec: { ...smallestSpec, wokers: {}, sweep: { interval: 1 } } },
      fields: ["metadata.label", "spec.wokers", "spec.sweep.interval"],
      because: "ignored silently, they would be looked for in the wrong place",
    },
    {
      name: "a misspelled field beside a wrong one",
      changes: { spec: { ...smallestSpec, wokers: {}, sweep: { intervalSeconds: 1 } } },
      fields: ["spec.sweep.intervalSeconds", "spec.wokers"],
      because: "all problems are told at once",
    },
    {
      name: "what a cluster adds",
      changes: { metadata: { name: "orders", uid: "0d3e", resourceVersion: "7", managedFields: [] }, status: { observedGeneration: 1 } },
      fields: [],
      because: "a resource exported from a cluster has it",
    },
  ];

  it.each(rows)("judges $name", ({ changes, fields, because }) => {
    const parsed = parseManifest(manifest(changes));
    expect(parsed.ok ? [] : parsed.problems.map(({ field }) => field), because).toEqual(fields);
  });

  it("says in words what is wrong", () => {
    const spec = { ...smallestSpec, nats: { servers: [] }, workers: { replicas: -1, image: 5 }, limits: { retriesMax: "many" } };
    const parsed = parseManifest(manifest({ spec }));
    expect(parsed.ok ? [] : parsed.problems).toEqual([
      { field: "spec.nats.servers", problem: "must have at least 1 items" },
      { field: "spec.limits.retriesMax", problem: "must be a whole number" },
      { field: "spec.workers.replicas", problem: "must be at least 0" },
      { field: "spec.workers.image", problem: "must be text" },
    ]);
  });
});

const gib = 1024 ** 3;
