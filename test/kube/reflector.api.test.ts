import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { kubeApi, type KubeApi } from "../../src/kube/api.ts";
import { KubeConnection } from "../../src/kube/connection.ts";
import { collectionPath, type ApiResource } from "../../src/kube/objects.ts";
import { Reflector } from "../../src/kube/reflector.ts";
import { WatchEventReader } from "../../src/kube/watch-events.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { callApiAs } from "../cluster/api.ts";
import { startControlPlane, type ControlPlane } from "../cluster/control-plane.ts";
import { waitUntil } from "../cluster/processes.ts";
import { FakeLog } from "../fakes/log.ts";
import { createNamespace, type TestNamespace } from "./namespace.ts";

const configMaps: ApiResource = { group: "", version: "v1", plural: "configmaps" };
const mayFollow = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] }];

type Following = { readonly seen: Map<string, string>; readonly history: string[]; readonly log: FakeLog; readonly reflector: Reflector<string>; readonly stop: () => Promise<void> };

function follow(api: KubeApi, namespace: string): Following {
  const [seen, history, log] = [new Map<string, string>(), [] as string[], new FakeLog()];
  const reflector = new Reflector<string>({
    api, log,
    clock: systemClock,
    random: systemRandom,
    path: collectionPath(configMaps, namespace),
    labelSelector: "followed=yes",
    keep: (object) => object.metadata.annotations?.["step"] ?? "",
    onChange: ({ key, now }) => {
      history.push(`${key.name}=${now ?? "gone"}`);
      if (now === undefined) seen.delete(key.name);
      else seen.set(key.name, now);
    },
  });
  const controller = new AbortController();
  const running = reflector.run(controller.signal);
  const stop = async (): Promise<void> => {
    controller.abort();
    await running;
  };
  return { seen, history, log, reflector, stop };
}

async function until(what: string, probe: () => boolean): Promise<void> {
  await waitUntil({ what, probe: async () => probe(), timeoutMs: 30_000 });
}

const followed = (name: string, step: string): object => ({ metadata: { name, labels: { followed: "yes" }, annotations: { step } } });

describe("on the shared API server", () => {
  let namespace: TestNamespace;
  let connection: KubeConnection;
  let path: string;

  beforeAll(async () => {
    namespace = await createNamespace(inject("kubeconfigPath"), "reflector");
    connection = new KubeConnection({ kind: "file", path: await namespace.accountWith("follower", mayFollow) });
    path = `/api/v1/namespaces/${namespace.name}/configmaps`;
  });

  afterAll(async () => {
    await connection.close();
    await namespace.delete();
  });

  test("what exists, changes and vanishes is reported once each, and other objects are not", async () => {
    await namespace.admin({ method: "POST", path, body: followed("old", "1") });
    await namespace.admin({ method: "POST", path, body: { metadata: { name: "other" } } });
    const { history, reflector, stop } = follow(kubeApi(connection), namespace.name);
    await until("the list", () => reflector.isSynced);
    await namespace.admin({ method: "POST", path, body: followed("new", "1") });
    await namespace.admin({ method: "PATCH", path: `${path}/new`, body: { metadata: { annotations: { step: "2" } } } });
    await namespace.admin({ method: "DELETE", path: `${path}/old` });
    await until("the deletion", () => history.includes("old=gone"));
    expect(history).toEqual(["old=1", "new=1", "new=2", "old=gone"]);
    await stop();
  });

  test("without the right to list it keeps trying, and begins once it is given the right", async () => {
    const kubeconfigPath = await namespace.accountWith("stranger", [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }]);
    const stranger = new KubeConnection({ kind: "file", path: kubeconfigPath });
    const { log, reflector, stop } = follow(kubeApi(stranger), namespace.name);
    await until("refusals", () => log.lines.length >= 2);
    expect(log.lines.every(({ fields }) => fields["code"] === "CLUSTER_DENIED")).toBe(true);
    expect(reflector.isSynced).toBe(false);
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace.name}/roles`;
    await namespace.admin({ method: "PATCH", path: `${roles}/stranger`, body: { rules: mayFollow } });
    await until("the list", () => reflector.isSynced);
    await stop();
    await stranger.close();
  });
});

describe("when the API server goes away", () => {
  let controlPlane: ControlPlane;
  let connection: KubeConnection;
  const path = "/api/v1/namespaces/default/configmaps";

  beforeAll(async () => {
    controlPlane = await startControlPlane();
    connection = new KubeConnection({ kind: "file", path: controlPlane.kubeconfigPath });
  });

  beforeAll(async () => {
    await callApiAs(controlPlane.kubeconfigPath, { method: "POST", path, body: followed("kept", "1") });
    await callApiAs(controlPlane.kubeconfigPath, { method: "POST", path, body: followed("doomed", "1") });
  });

  afterAll(async () => {
    await connection.close();
    await controlPlane.stop();
  });

  test("nothing is forgotten meanwhile, and what changed is seen after its return", async () => {
    const admin = controlPlane.kubeconfigPath;
    const { seen, history, log, reflector, stop } = follow(kubeApi(connection), "default");
    await until("the list", () => seen.size === 2);
    await controlPlane.stopApiServer();
    await until("a failed attempt", () => log.messages("warn").length >= 2);
    const progressAtMs = reflector.progressAtMs;
    await until("another attempt", () => reflector.progressAtMs > progressAtMs);
    expect(seen.size).toBe(2);
    await controlPlane.startApiServer();
    await callApiAs(admin, { method: "DELETE", path: `${path}/doomed` });
    await callApiAs(admin, { method: "PATCH", path: `${path}/kept`, body: { metadata: { annotations: { step: "2" } } } });
    await until("both changes", () => seen.get("kept") === "2" && !seen.has("doomed"));
    expect(history).toEqual(expect.arrayContaining(["kept=2", "doomed=gone"]));
    expect(history.filter((line) => line === "doomed=gone")).toHaveLength(1);
    await stop();
  });

  test("a watch from a version before its restart is answered as expired", async () => {
    const api = kubeApi(connection);
    const list = await api.call<{ readonly metadata: { readonly resourceVersion: string } }>({ method: "GET", path });
    const resourceVersion = list.kind === "ok" ? list.value.metadata.resourceVersion : "";
    await callApiAs(controlPlane.kubeconfigPath, { method: "POST", path, body: followed("newer", "1") });
    await controlPlane.stopApiServer();
    await controlPlane.startApiServer();
    const opened = await api.stream({ path, query: { watch: "true", resourceVersion } });
    const piece = opened.kind === "ok" ? await opened.value.read() : undefined;
    if (opened.kind === "ok") opened.value.stop();
    expect(new WatchEventReader({ bytesMax: 100_000 }).push(piece ?? new Uint8Array())).toEqual([{ kind: "expired" }]);
  });
});
