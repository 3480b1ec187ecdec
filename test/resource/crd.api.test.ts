/**
 * The generated CRD on a real API server: it is accepted, its rules refuse what parseSpec refuses and name the same field,
 * and its defaults are those of parseSpec.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { customResourceDefinition } from "../../src/resource/crd.ts";
import { apiVersion, crdName, kind, resourceNames } from "../../src/resource/names.ts";
import { ApiRefusal, callApiAs, type ApiRequest } from "../cluster/api.ts";
import { bringClientTools, clientToolPath } from "../cluster/client-tools.ts";
import { waitUntil } from "../cluster/processes.ts";
import { changeExamples, fullSpec, patched, smallestSpec, specExamples } from "./examples.ts";

const kubeconfigPath = inject("kubeconfigPath");
const namespace = `crd-${randomBytes(4).toString("hex")}`;
const collection = `/apis/${apiVersion}/namespaces/${namespace}/${resourceNames.plural}`;
const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

type Resource = {
  readonly metadata: { readonly name: string; readonly generation: number; readonly resourceVersion: string };
  readonly spec: { readonly workers: { readonly replicas: number } };
  readonly status?: Readonly<Record<string, unknown>>;
};

async function asAdmin<Answer>(call: ApiRequest): Promise<Answer> {
  return await callApiAs<Answer>(kubeconfigPath, call);
}

async function kubectl(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(clientToolPath("kubectl"), [`--kubeconfig=${kubeconfigPath}`, `--namespace=${namespace}`, ...args]);
  return stdout;
}

/** With strict field validation, so that a field which the CRD does not know is an error and not a warning. */
async function create(name: string, spec: unknown): Promise<Resource> {
  return await asAdmin<Resource>({ method: "POST", path: `${collection}?fieldValidation=Strict`, body: { apiVersion, kind, metadata: { name }, spec } });
}

/** The message with which a call is refused, or undefined when it is accepted. */
async function refusal(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (error instanceof ApiRefusal && error.reason === "Invalid") return error.message;
    throw error;
  }
}

/** Fields named by a refusal: it lists them as `<field>: <kind of problem>: …`. */
function fieldsIn(message: string | undefined): readonly string[] {
  const named = [...(message ?? "").matchAll(/([a-z][A-Za-z0-9.[\]]*): (?:Invalid value|Required value|Unsupported value|Too many|Too long)/g)].map((match) => match[1] ?? "");
  return [...new Set(named)];
}

const freshName = (): string => `t-${randomBytes(4).toString("hex")}`;

beforeAll(async () => {
  await bringClientTools(() => undefined);
  await asAdmin({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace } } });
  await putCrd();
  await waitUntil({ what: "the CRD is served", probe: isServed, timeoutMs: 20_000 });
});

/** Files share the API server: whoever comes first creates the CRD, and everybody brings it to what is generated now. */
async function putCrd(): Promise<void> {
  const body = customResourceDefinition();
  try {
    await asAdmin({ method: "POST", path: crdPath, body });
  } catch (error) {
    if (!(error instanceof ApiRefusal && error.reason === "AlreadyExists")) throw error;
    await asAdmin({ method: "PATCH", path: `${crdPath}/${crdName}`, body: { spec: body["spec"] } });
  }
}

async function isServed(): Promise<boolean> {
  try {
    await asAdmin({ method: "GET", path: collection });
    return true;
  } catch (error) {
    if (error instanceof ApiRefusal && error.status === 404) return false;
    throw error;
  }
}

describe("a resource", () => {
  it.each(specExamples)("is judged by the API server as by parseSpec: $name", async ({ patch, field, because }) => {
    const message = await refusal(create(freshName(), patched(patch)));
    expect(fieldsIn(message), because).toEqual(field === undefined ? [] : [field]);
  });

  it.each(changeExamples)("is changed as the rules allow: $name", async ({ from, patch, field, because }) => {
    const name = freshName();
    const { metadata } = await create(name, patched(from));
    const body = { apiVersion, kind, metadata: { name, resourceVersion: metadata.resourceVersion }, spec: patched(patch) };
    const message = await refusal(asAdmin({ method: "PUT", path: `${collection}/${name}`, body }));
    expect(fieldsIn(message), because).toEqual(field === undefined ? [] : [field]);
  });

  it.each([46, 47])("may have a name of at most 46 characters: %i", async (length) => {
    const message = await refusal(create("n".repeat(length), smallestSpec));
    expect(fieldsIn(message)).toEqual(length > 46 ? ["metadata.name"] : []);
  });

  it("says in one sentence what is wrong and where", async () => {
    const message = await refusal(create("worded", patched({ admission: { closePercent: 70 } })));
    expect(message).toContain('DurableTimer.durabletimer.dev "worded" is invalid: spec.admission.reopenPercent: Invalid value: must be less than closePercent');
  });

  it("gets the defaults of parseSpec, with sizes as they were written", async () => {
    const { spec, status } = await create(freshName(), smallestSpec);
    expect({ spec, status }).toEqual({
      spec: {
        ...smallestSpec,
        nats: { ...smallestSpec.nats, replyPrefix: "_INBOX.durable_timer" },
        topology: { ...smallestSpec.topology, replicas: 1, adoption: { policy: "Own" } },
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
      status: { observedGeneration: -1 },
    });
  });

  it("keeps every field of a full spec as it was written", async () => {
    const { spec } = await create(freshName(), fullSpec);
    expect(spec).toEqual(fullSpec);
  });
});

describe("the subresources", () => {
  it("scale the workers, and nothing else changes", async () => {
    const name = freshName();
    await create(name, smallestSpec);
    const scaled = await asAdmin<{ readonly spec: { readonly replicas: number } }>({
      method: "PATCH",
      path: `${collection}/${name}/scale`,
      body: { spec: { replicas: 7 } },
    });
    expect(scaled.spec.replicas).toBe(7);
    const { spec } = await asAdmin<Resource>({ method: "GET", path: `${collection}/${name}` });
    expect(spec.workers.replicas).toBe(7);
  });

  it("keep the status apart from the spec: writing it starts no new generation", async () => {
    const name = freshName();
    await create(name, smallestSpec);
    const { metadata, spec, status } = await asAdmin<Resource>({
      method: "PATCH",
      path: `${collection}/${name}/status`,
      body: { spec: { workers: { replicas: 9 } }, status: fullStatus },
    });
    expect(metadata.generation).toBe(1);
    expect(spec.workers.replicas).toBe(2);
    expect(status).toEqual(fullStatus);
  });
});

describe("kubectl", () => {
  it("shows the columns of a working resource by the short name and by the category", async () => {
    const name = freshName();
    await create(name, smallestSpec);
    await asAdmin({ method: "PATCH", path: `${collection}/${name}/status`, body: { status: fullStatus } });
    const table = await kubectl("get", "dtimer", name, "-o", "wide");
    const [header = "", row = ""] = table.trim().split("\n").map((line) => line.trim().split(/\s+/).join(" "));
    expect(header).toBe("NAME READY REASON WORKERS ADMISSION FULL% RESUME NATS AGE");
    expect(row).toMatch(new RegExp(`^${name} True Serving 2/2 True 60 Open 2\\.15\\.2 \\d+[sm]`));
    expect(await kubectl("get", "durabletimers", "-o", "name")).toContain(`durabletimer.durabletimer.dev/${name}\n`);
  });

  it("explains fields", async () => {
    const text = (await kubectl("explain", "durabletimer.spec.admission.reopenPercent")).replace(/\s+/g, " ");
    expect(text).toContain("FIELD: reopenPercent <integer>");
    expect(text).toContain("less than closePercent");
  });
});

const fullStatus = {
  observedGeneration: 1,
  conditions: [
    { type: "Ready", status: "True", reason: "Serving", message: "", observedGeneration: 1, lastTransitionTime: "2026-11-30T20:00:00Z" },
    { type: "ResumeOpen", status: "True", reason: "Open", message: "", observedGeneration: 1, lastTransitionTime: "2026-11-30T20:00:00Z" },
    { type: "AdmissionOpen", status: "True", reason: "BelowSoftLimit", message: "", observedGeneration: 1, lastTransitionTime: "2026-11-30T20:00:00Z" },
  ],
  owner: { id: "5c1d/payments/orders", uid: "0d3e" },
  broker: { accountName: "PAYMENTS", clusterName: "nats-eu", version: "2.15.2", apiLevel: 5 },
  topology: {
    layoutVersion: 1,
    streams: [
      { name: "DURABLE_TIMER_SNAPSHOTS", incarnation: "k3v9", created: "2026-11-30T20:00:00.123456789Z", replicas: 3, everHeldData: true, limitBytes: "40Gi", usedPercent: 60 },
      { name: "DURABLE_TIMER_SCHEDULES", incarnation: "p0q7", created: "2026-11-30T20:00:00Z", replicas: 3, everHeldData: true },
    ],
  },
  capacity: { worstStream: "DURABLE_TIMER_SNAPSHOTS", worstPercent: 60, accountPercent: 45 },
  timers: { waiting: "1.2M", awaitingFeedback: "340", overdue: "0", resumesPending: "0", resumePullers: "Present" },
  workers: {
    everReady: true, replicas: 2, updatedReplicas: 2, readyReplicas: 2, summary: "2/2", selector: "durabletimer.dev/name=orders",
    image: "registry/durable-timer@sha256:ab", templateHash: "5d8f", problem: "",
  },
  resume: { consumer: "NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME", everOpened: true },
  incidents: [{ id: "lost-state-9f2a", kind: "TopologyLost", message: "Stream is gone" }],
};
