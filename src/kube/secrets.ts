/**
 * Reads the Secrets that a resource names for the operator's connection to its broker.
 *
 * They are read by name, each time anew, and kept by nobody here: a rotated Secret is seen at the next look, and the operator
 * needs no right to list or to watch Secrets.
 */
import type { Failure } from "../base/failure.ts";
import type { ObservedResource } from "../operator/plan/observed.ts";
import type { BrokerConnectionOptions, BrokerSecret, ResolvedConnection } from "../operator/ports.ts";
import type { DurableTimerSpec } from "../resource/durable-timer.ts";
import { connectionSecrets, type AuthSource, type ConnectionSecrets } from "../resource/secrets.ts";
import type { KubeApi } from "./api.ts";
import { apiResources, objectPath } from "./objects.ts";

/** Resolves what `spec.nats` names for the operator. */
export async function resolveConnection(api: KubeApi, resource: ObservedResource): Promise<ResolvedConnection> {
  const { namespace } = resource.key;
  const wanted = connectionSecrets(resource.spec, "operator");
  const read = await readAll(api, namespace, namesOf(wanted));
  if (read.kind === "failed") return read;
  const reader = new KeyReader(read.found);
  const options = connectionOptions(resource, wanted, reader);
  return reader.problems.length > 0 ? { kind: "missing", problems: reader.problems } : { kind: "resolved", options, warnings: [] };
}

/** Data of a Secret, or undefined when there is no such Secret. */
type Found = ReadonlyMap<string, Readonly<Record<string, string>> | undefined>;

function namesOf({ auth, ca, clientCert }: ConnectionSecrets): readonly string[] {
  const names = [auth?.secretName, ca?.secretName, clientCert?.secretName].filter((name) => name !== undefined);
  return [...new Set(names)];
}

async function readAll(api: KubeApi, namespace: string, names: readonly string[]): Promise<{ readonly kind: "read"; readonly found: Found } | { readonly kind: "failed"; readonly failure: Failure }> {
  const found = new Map<string, Readonly<Record<string, string>> | undefined>();
  for (const name of names) {
    const read = await api.call<{ readonly data?: Readonly<Record<string, string>> }>({ method: "GET", path: objectPath(apiResources.secrets, { namespace, name }) });
    if (read.kind === "ok") found.set(name, read.value.data ?? {});
    else if (read.failure.code === "CLUSTER_MISSING") found.set(name, undefined);
    else return { kind: "failed", failure: read.failure };
  }
  return { kind: "read", found };
}

/** Takes keys out of Secrets and notes what is not there, so that a person learns of everything at once. */
class KeyReader {
  readonly #found: Found;
  readonly #problems = new Set<string>();

  constructor(found: Found) {
    this.#found = found;
  }

  get problems(): readonly string[] {
    return [...this.#problems].sort();
  }

  /** Without the newline at the end that files made by hand have. */
  line(secretName: string, key: string): string {
    return this.text(secretName, key).replace(/\r?\n$/, "");
  }

  text(secretName: string, key: string): string {
    const data = this.#found.get(secretName);
    if (data === undefined) this.#problems.add(`Secret ${secretName} does not exist`);
    else if ((data[key] ?? "") === "") this.#problems.add(`Secret ${secretName} has no key ${key}`);
    return Buffer.from(data?.[key] ?? "", "base64").toString("utf8");
  }
}

function connectionOptions(resource: ObservedResource, wanted: ConnectionSecrets, reader: KeyReader): BrokerConnectionOptions {
  const { key, spec } = resource;
  const { servers, jetStreamDomain } = spec.nats;
  const tls = tlsOptions(spec, wanted, reader);
  return {
    servers,
    name: `durable-timer-operator ${key.namespace}/${key.name}`,
    ...(jetStreamDomain === undefined ? {} : { domain: jetStreamDomain }),
    ...(wanted.auth === undefined ? {} : { auth: brokerSecret(wanted.auth, reader) }),
    ...(tls === undefined ? {} : { tls }),
  };
}

function tlsOptions(spec: DurableTimerSpec, { ca, clientCert }: ConnectionSecrets, reader: KeyReader): BrokerConnectionOptions["tls"] {
  if (spec.nats.tls === undefined) return undefined;
  return {
    handshakeFirst: spec.nats.tls.handshakeFirst ?? false,
    ...(ca === undefined ? {} : { ca: reader.text(ca.secretName, ca.key) }),
    ...(clientCert === undefined
      ? {}
      : { cert: reader.text(clientCert.secretName, clientCert.certKey), key: reader.text(clientCert.secretName, clientCert.keyKey) }),
  };
}

function brokerSecret(source: AuthSource, reader: KeyReader): BrokerSecret {
  switch (source.kind) {
    case "credentials":
      return { kind: "credentials", text: reader.text(source.secretName, source.key) };
    case "nkey":
      return { kind: "nkey", seed: reader.line(source.secretName, source.key) };
    case "token":
      return { kind: "token", token: reader.line(source.secretName, source.key) };
    case "user":
      return { kind: "user", user: reader.line(source.secretName, source.userKey), password: reader.line(source.secretName, source.passwordKey) };
  }
}
