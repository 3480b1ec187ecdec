import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { DurationMs } from "../../src/base/units.ts";
import { kubeApi } from "../../src/kube/api.ts";
import { KubeConnection } from "../../src/kube/connection.ts";
import { leadWhileElected, type LeaseEnd } from "../../src/kube/lease.ts";
import type { LeaseObject } from "../../src/kube/lease-record.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { waitUntil } from "../cluster/processes.ts";
import { FakeLog } from "../fakes/log.ts";
import { createNamespace, type TestNamespace } from "./namespace.ts";

let namespace: TestNamespace;
let connection: KubeConnection;

beforeAll(async () => {
  namespace = await createNamespace(inject("kubeconfigPath"), "lease");
  const rules = [
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
    { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "update"], resourceNames: ["operator"] },
  ];
  connection = new KubeConnection({ kind: "file", path: await namespace.accountWith("candidate", rules) });
});

afterAll(async () => {
  await connection.close();
  await namespace.delete();
});

const ms = (value: number): DurationMs => value as DurationMs;

type Candidate = { readonly isLeading: () => boolean; readonly end: Promise<LeaseEnd>; readonly stop: () => void; readonly cut: () => void };

/** Times are some three fifths of the product's, in whole seconds: a busy machine must not cost anybody the lease. */
function enter(identity: string): Candidate {
  let isLeading = false;
  let isCut = false;
  const controller = new AbortController();
  const api = kubeApi(connection);
  const reachable: typeof api = {
    ...api,
    call: async (request) => await api.call(isCut ? { ...request, path: "/livez/nothing-here" } : request),
  };
  const options = {
    api: reachable, identity,
    clock: systemClock, random: systemRandom, log: new FakeLog(),
    namespace: namespace.name, name: "operator",
    leaseMs: ms(9_000), renewDeadlineMs: ms(6_000), retryMs: ms(500),
  };
  const end = leadWhileElected(options, controller.signal, async (signal) => {
    isLeading = true;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    isLeading = false;
  });
  return { isLeading: () => isLeading, end, stop: () => controller.abort(), cut: () => (isCut = true) };
}

async function lease(): Promise<LeaseObject> {
  return await namespace.admin<LeaseObject>({ method: "GET", path: `/apis/coordination.k8s.io/v1/namespaces/${namespace.name}/leases/operator` });
}

async function until(what: string, probe: () => boolean): Promise<void> {
  await waitUntil({ what, probe: async () => probe(), timeoutMs: 30_000 });
}

test("leadership passes on after a stop at once, and after silence once the lease has run out; never two lead", async () => {
  const [first, second, third] = [enter("first"), enter("second"), enter("third")];
  const all = [first, second, third];
  const leaders = (): readonly Candidate[] => all.filter((candidate) => candidate.isLeading());
  await until("a leader", () => leaders().length === 1);
  const [released] = leaders();
  released?.stop();
  expect(await released?.end).toBe("stopped");
  await until("the next leader", () => leaders().length === 1);
  const transitions = (await lease()).spec?.leaseTransitions;
  const [cut] = leaders();
  cut?.cut();
  expect(await cut?.end, "whoever cannot renew gives up by itself").toBe("lost");
  expect(leaders(), "before anybody else leads").toEqual([]);
  await until("the last leader", () => leaders().length === 1);
  expect((await lease()).spec?.leaseTransitions).toBe((transitions ?? 0) + 1);
  for (const candidate of all) candidate.stop();
  await Promise.all(all.map(({ end }) => end));
  expect((await lease()).spec?.holderIdentity).toBe("");
});
