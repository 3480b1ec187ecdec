import type { V1PodTemplateSpec } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { workerPodTemplate } from "../../../src/kube/manifests/worker-pod.ts";
import { workerConfigVariable, workerSelector } from "../../../src/resource/names.ts";
import { parseSpec } from "../../../src/resource/validate.ts";
import { readWorkerConfig } from "../../../src/resource/worker-config.ts";
import { fullSpec, smallestSpec } from "../../resource/examples.ts";

function render(spec: unknown): V1PodTemplateSpec {
  const parsed = parseSpec(spec);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return workerPodTemplate({ name: "orders", spec: parsed.spec, image: "a:1", serviceAccountName: "orders-worker", labels: {} });
}

function withWorkers(workers: object): object {
  return { ...smallestSpec, workers };
}

test("additions of the author do not replace what the operator sets", () => {
  const template = render({
    ...fullSpec,
    workers: {
      ...fullSpec.workers,
      podTemplate: {
        metadata: { labels: { "durabletimer.dev/name": "other", "app.kubernetes.io/component": "other" } },
        spec: {
          volumes: [{ name: "durable-timer-nats-auth", emptyDir: {} }],
          volumeMounts: [{ name: "other", mountPath: "/etc/durable-timer/nats-auth" }],
        },
      },
    },
  });
  expect(template.metadata?.labels).toMatchObject(workerSelector("orders"));
  const { volumes = [], containers = [] } = template.spec ?? {};
  expect(volumes.filter(({ name }) => name === "durable-timer-nats-auth")).toMatchObject([{ projected: {} }]);
  expect(containers[0]?.volumeMounts?.filter(({ mountPath }) => mountPath.endsWith("nats-auth"))).toMatchObject([{ name: "durable-timer-nats-auth" }]);
});

test("additions to the security context keep the rest of it", () => {
  const template = render(withWorkers({ podTemplate: { spec: { securityContext: { runAsUser: 1_000, seccompProfile: { type: "Localhost", localhostProfile: "x" } } } } }));
  expect(template.spec?.securityContext).toMatchObject({
    runAsNonRoot: true,
    runAsUser: 1_000,
    fsGroup: 65_532,
    seccompProfile: { type: "Localhost", localhostProfile: "x" },
  });
});

test("additions that are empty say nothing", () => {
  const empty = { serviceAccountName: "", imagePullSecrets: [], priorityClassName: "", nodeSelector: {}, tolerations: [], affinity: {}, topologySpreadConstraints: [], env: [], volumes: [], volumeMounts: [], securityContext: {} };
  expect(render(withWorkers({ podTemplate: { metadata: { labels: {}, annotations: {} }, spec: empty } }))).toEqual(render(smallestSpec));
});

test("the configuration in the template is the one that a worker reads", () => {
  const variable = render(fullSpec).spec?.containers[0]?.env?.find(({ name }) => name === workerConfigVariable);
  expect(readWorkerConfig(variable?.value ?? "")).toMatchObject({ ok: true, config: { lookahead: 500, nats: { domain: "hub" } } });
});

test("only the keys that are used are mounted, readable by the pod's group alone", () => {
  const nats = { ...smallestSpec.nats, auth: { userPasswordSecretRef: { name: "login", passwordKey: "pass" } } };
  const [volume] = render({ ...smallestSpec, nats }).spec?.volumes ?? [];
  const items = [{ key: "username", path: "username" }, { key: "pass", path: "pass" }];
  expect(volume?.projected).toEqual({ defaultMode: 0o440, sources: [{ secret: { name: "login", items } }] });
});
