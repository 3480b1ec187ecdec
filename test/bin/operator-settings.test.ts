import { expect, test } from "vitest";
import { readOperatorSettings } from "../../src/bin/operator-settings.ts";

const least = { DURABLE_TIMER_WORKER_IMAGE: "registry.example/durable-timer:1", KUBERNETES_SERVICE_HOST: "10.0.0.1" };

test("in a pod only the workers' image must be said", () => {
  expect(readOperatorSettings(least)).toEqual({
    ok: true,
    settings: {
      source: { kind: "inCluster" },
      watchNamespaces: [],
      workerImage: "registry.example/durable-timer:1",
      lease: { name: "durable-timer-operator" },
      health: { port: 8080 },
      logLevel: "info",
    },
  });
});

test("everything can be said", () => {
  const read = readOperatorSettings({
    ...least,
    KUBECONFIG: "/k",
    DURABLE_TIMER_WATCH_NAMESPACES: "b, a,,b",
    DURABLE_TIMER_CLUSTER_ID: "c1",
    DURABLE_TIMER_LEASE_NAME: "l",
    DURABLE_TIMER_LEASE_NAMESPACE: "n",
    DURABLE_TIMER_HEALTH_PORT: "0",
    DURABLE_TIMER_HEALTH_HOST: "127.0.0.1",
    LOG_LEVEL: "debug",
  });
  expect(read).toMatchObject({
    ok: true,
    settings: {
      source: { kind: "file", path: "/k" },
      watchNamespaces: ["a", "b"],
      clusterId: "c1",
      lease: { name: "l", namespace: "n" },
      health: { port: 0, host: "127.0.0.1" },
      logLevel: "debug",
    },
  });
});

test("an empty variable counts as one that is not set", () => {
  const read = readOperatorSettings({ ...least, KUBECONFIG: "", DURABLE_TIMER_WATCH_NAMESPACES: " ", DURABLE_TIMER_CLUSTER_ID: "", LOG_LEVEL: "" });
  expect(read).toEqual(readOperatorSettings(least));
});

test("every problem is told at once", () => {
  expect(readOperatorSettings({ DURABLE_TIMER_HEALTH_PORT: "http", LOG_LEVEL: "loud" })).toEqual({
    ok: false,
    problems: ["KUBECONFIG is required outside of a pod", "DURABLE_TIMER_WORKER_IMAGE is required", "DURABLE_TIMER_HEALTH_PORT must be a port, 0 to 65535", "LOG_LEVEL must be one of debug, info, warn, error"],
  });
});
