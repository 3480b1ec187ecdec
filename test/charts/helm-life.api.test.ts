/**
 * Both charts installed, upgraded and uninstalled on a control plane of their own: the definition of DurableTimer belongs to
 * the whole cluster, and other files of tests bring it by other means. Its pods do not run here.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fullSpec, patched, smallestSpec } from "../resource/examples.ts";
import { bringClientTools, clientToolPath } from "../cluster/client-tools.ts";
import { runCommand, succeeds } from "../cluster/commands.ts";
import { startControlPlane, type ControlPlane } from "../cluster/control-plane.ts";
import { repositoryDir } from "../cluster/paths.ts";
import { install, refusal, uninstall, type Release } from "./helm.ts";

const operator: Release = { chart: "durable-timer-operator", name: "durable-timer-operator", namespace: "timers" };
const orders: Release = { chart: "durable-timer", name: "orders", namespace: "payments", values: { spec: smallestSpec } };
const examplesDir = join(repositoryDir, "docs", "examples");
const operatorAccount = "--as=system:serviceaccount:timers:durable-timer-operator";

let controlPlane: ControlPlane;

async function kubectl(...args: readonly string[]): Promise<string> {
  return (await runCommand(clientToolPath("kubectl"), args, { env: { KUBECONFIG: controlPlane.kubeconfigPath } })).trim();
}

async function exists(...args: readonly string[]): Promise<boolean> {
  return await succeeds(clientToolPath("kubectl"), ["--kubeconfig", controlPlane.kubeconfigPath, "get", ...args]);
}

/** Whether somebody may do something, as the API server's authorizer says. It answers by its exit code as well. */
async function may(who: string, ...what: readonly string[]): Promise<boolean> {
  return await succeeds(clientToolPath("kubectl"), ["--kubeconfig", controlPlane.kubeconfigPath, "auth", "can-i", ...what, who]);
}

beforeAll(async () => {
  await bringClientTools(() => undefined);
  controlPlane = await startControlPlane();
  await kubectl("create", "namespace", "payments");
});

afterAll(async () => {
  await controlPlane.stop();
});

describe("the two charts", () => {
  it("say what to do next, the operator's first", async () => {
    expect(await install(controlPlane.kubeconfigPath, operator)).toContain("kubectl get durabletimers --all-namespaces");
    await kubectl("wait", "crd/durabletimers.durabletimer.dev", "--for=condition=Established", "--timeout=30s");
  });

  it.each(readdirSync(examplesDir).filter((name) => name.endsWith(".yaml")))("take what the examples say: %s", async (name) => {
    expect(await kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", join(examplesDir, name))).toMatch(/^durabletimer\S+ (created|configured) \(server dry run\)$/);
  });

  it("make a resource once the definition is there", async () => {
    expect(await install(controlPlane.kubeconfigPath, orders)).toContain("wait durabletimer/orders --for=condition=Ready");
    expect(await kubectl("get", "dtimer", "--namespace", "payments", "--output", "name")).toBe("durabletimer.durabletimer.dev/orders");
  });

  it("let a resource with every field through to the API server as it is", async () => {
    // The smallest spec has no domain and one copy, which cannot be changed: another release takes every field.
    await install(controlPlane.kubeconfigPath, { ...orders, name: "invoices", values: { spec: fullSpec } });
    const stored = JSON.parse(await kubectl("get", "dtimer/invoices", "--namespace", "payments", "--output", "json")) as { readonly spec: unknown };
    expect(stored.spec).toMatchObject(fullSpec);
    await uninstall(controlPlane.kubeconfigPath, { ...orders, name: "invoices" });
  });

  it("hand on what the API server refuses, with the field and the reason", async () => {
    const values = { spec: patched({ admission: { closePercent: 50, reopenPercent: 75 } }) };
    const said = await refusal(install(controlPlane.kubeconfigPath, { ...orders, name: "invalid", values }));
    expect(said).toContain("spec.admission.reopenPercent");
    expect(said).toContain("must be less than closePercent");
  });

  it("scale workers by an upgrade of the resource's release", async () => {
    await install(controlPlane.kubeconfigPath, { ...orders, values: { spec: { ...smallestSpec, workers: { replicas: 5 } } } });
    expect(await kubectl("get", "dtimer/orders", "--namespace", "payments", "--output", "jsonpath={.spec.workers.replicas}")).toBe("5");
  });

  it("leave the definition and the resources when the operator is uninstalled, and take them over when it is installed again", async () => {
    const uidOf = async (): Promise<string> => await kubectl("get", "dtimer/orders", "--namespace", "payments", "--output", "jsonpath={.metadata.uid}");
    const uid = await uidOf();
    await uninstall(controlPlane.kubeconfigPath, operator);
    expect(await exists("deployment/durable-timer-operator", "--namespace", "timers")).toBe(false);
    expect(await uidOf()).toBe(uid);
    await install(controlPlane.kubeconfigPath, { ...operator, values: { replicas: 2 } });
    expect(await uidOf()).toBe(uid);
    expect(await exists("poddisruptionbudget/durable-timer-operator", "--namespace", "timers")).toBe(true);
  });

  it("bring the definition of their version with an upgrade", async () => {
    await kubectl("patch", "crd", "durabletimers.durabletimer.dev", "--type=json", '--patch=[{"op":"remove","path":"/spec/names/shortNames"}]');
    await install(controlPlane.kubeconfigPath, operator, ["--force-conflicts"]);
    expect(await kubectl("get", "crd", "durabletimers.durabletimer.dev", "--output", "jsonpath={.spec.names.shortNames}")).toBe('["dtimer"]');
  });
});

describe("rights once installed", () => {
  it("let the operator do its work in every namespace, and no more than that", async () => {
    await install(controlPlane.kubeconfigPath, operator);
    expect(await may(operatorAccount, "patch", "deployments.apps", "--namespace", "payments")).toBe(true);
    expect(await may(operatorAccount, "get", "secrets", "--namespace", "payments")).toBe(true);
    expect(await may(operatorAccount, "list", "secrets", "--namespace", "payments")).toBe(false);
    expect(await may(operatorAccount, "delete", "deployments.apps", "--namespace", "payments")).toBe(false);
    expect(await may(operatorAccount, "get", "namespaces/kube-system")).toBe(true);
    // Whether a namespace is being deleted decides what becomes of the streams of a resource in it.
    expect(await may(operatorAccount, "get", "namespaces/payments")).toBe(true);
    expect(await may(operatorAccount, "list", "namespaces")).toBe(false);
    expect(await may(operatorAccount, "delete", "durabletimers", "--namespace", "payments")).toBe(false);
    expect(await may(operatorAccount, "update", "leases.coordination.k8s.io/durable-timer-operator", "--namespace", "timers")).toBe(true);
    expect(await may(operatorAccount, "update", "leases.coordination.k8s.io/another", "--namespace", "timers")).toBe(false);
  });

  it("end where the watched namespaces end", async () => {
    await install(controlPlane.kubeconfigPath, { ...operator, values: { watchNamespaces: ["payments"] } });
    expect(await may(operatorAccount, "patch", "deployments.apps", "--namespace", "payments")).toBe(true);
    expect(await may(operatorAccount, "patch", "deployments.apps", "--namespace", "default")).toBe(false);
    expect(await may(operatorAccount, "get", "secrets", "--namespace", "kube-system")).toBe(false);
  });

  it("come to people with the roles that they have", async () => {
    await kubectl("create", "rolebinding", "viewers", "--clusterrole=view", "--user=vera", "--namespace", "payments");
    await kubectl("create", "rolebinding", "editors", "--clusterrole=edit", "--user=ed", "--namespace", "payments");
    const as = (user: string): string => `--as=${user}`;
    await expect.poll(async () => await may(as("vera"), "list", "durabletimers", "--namespace", "payments"), { timeout: 30_000 }).toBe(true);
    expect(await may(as("vera"), "patch", "durabletimers", "--namespace", "payments")).toBe(false);
    await expect.poll(async () => await may(as("ed"), "create", "durabletimers", "--namespace", "payments"), { timeout: 30_000 }).toBe(true);
    expect(await may(as("ed"), "patch", "durabletimers", "--subresource=scale", "--namespace", "payments")).toBe(true);
    expect(await may(as("ed"), "update", "durabletimers", "--subresource=status", "--namespace", "payments")).toBe(false);
  });
});

describe("a definition that is not kept", () => {
  it("goes with the operator, and every resource with it", async () => {
    await install(controlPlane.kubeconfigPath, { ...operator, values: { crds: { keep: false } } });
    await uninstall(controlPlane.kubeconfigPath, operator, ["--wait"]);
    expect(await exists("crd", "durabletimers.durabletimer.dev")).toBe(false);
  });
});
