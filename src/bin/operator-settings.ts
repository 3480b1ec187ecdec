// What the operator is told by its environment. Variables, because a chart sets them without a shell and a person overrides one.

import { logLevels, type LogLevel } from "../telemetry/log.ts";
import { healthPort } from "../resource/names.ts";
import type { KubeSource } from "../kube/connection.ts";

export type OperatorSettings = {
  readonly source: KubeSource;
  /** Empty means every namespace. */
  readonly watchNamespaces: readonly string[];
  /** Image of the workers of resources that name none. */
  readonly workerImage: string;
  /** Absent: the uid of kube-system. */
  readonly clusterId?: string;
  readonly lease: { readonly name: string; /** Absent: the namespace of this pod. */ readonly namespace?: string };
  readonly health: { readonly port: number; readonly host?: string };
  readonly logLevel: LogLevel;
};

export type ReadSettings = { readonly ok: true; readonly settings: OperatorSettings } | { readonly ok: false; readonly problems: readonly string[] };

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the environment. An empty variable counts as one that is not set. */
export function readOperatorSettings(environment: Environment): ReadSettings {
  const reader = new Reader(environment);
  const clusterId = reader.text("DURABLE_TIMER_CLUSTER_ID");
  const leaseNamespace = reader.text("DURABLE_TIMER_LEASE_NAMESPACE");
  const healthHost = reader.text("DURABLE_TIMER_HEALTH_HOST");
  const settings: OperatorSettings = {
    source: reader.source(),
    watchNamespaces: reader.names("DURABLE_TIMER_WATCH_NAMESPACES"),
    workerImage: reader.required("DURABLE_TIMER_WORKER_IMAGE"),
    ...(clusterId === undefined ? {} : { clusterId }),
    lease: { name: reader.text("DURABLE_TIMER_LEASE_NAME") ?? "durable-timer-operator", ...(leaseNamespace === undefined ? {} : { namespace: leaseNamespace }) },
    health: { port: reader.port("DURABLE_TIMER_HEALTH_PORT"), ...(healthHost === undefined ? {} : { host: healthHost }) },
    logLevel: reader.logLevel("LOG_LEVEL"),
  };
  return reader.problems.length === 0 ? { ok: true, settings } : { ok: false, problems: reader.problems };
}

class Reader {
  readonly problems: string[] = [];
  readonly #environment: Environment;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  text(name: string): string | undefined {
    const value = this.#environment[name]?.trim() ?? "";
    return value === "" ? undefined : value;
  }

  /** Kubernetes tells every pod where its API server is. */
  source(): KubeSource {
    const path = this.text("KUBECONFIG");
    if (path !== undefined) return { kind: "file", path };
    if (this.text("KUBERNETES_SERVICE_HOST") === undefined) this.problems.push("KUBECONFIG is required outside of a pod");
    return { kind: "inCluster" };
  }

  required(name: string): string {
    const value = this.text(name);
    if (value === undefined) this.problems.push(`${name} is required`);
    return value ?? "";
  }

  names(name: string): readonly string[] {
    const parts = (this.text(name) ?? "").split(",").map((part) => part.trim());
    return [...new Set(parts.filter((part) => part !== ""))].sort();
  }

  port(name: string): number {
    const value = Number(this.text(name) ?? healthPort);
    if (!Number.isInteger(value) || value < 0 || value > 65_535) this.problems.push(`${name} must be a port, 0 to 65535`);
    return value;
  }

  logLevel(name: string): LogLevel {
    const value = this.text(name) ?? "info";
    const level = logLevels.find((known) => known === value);
    if (level === undefined) this.problems.push(`${name} must be one of ${logLevels.join(", ")}`);
    return level ?? "info";
  }
}
