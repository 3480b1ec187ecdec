/**
 * Reads the Secrets that a resource names for the operator's connection to its broker, and looks whether those of the workers'
 * are there: a pod with a missing one would wait without saying so.
 *
 * They are read by name, each time anew, and kept by nobody here: a rotated Secret is seen at the next look, and the operator
 * needs no right to list or to watch Secrets.
 */
import type { Failure } from "../base/failure.ts";
import type { ObservedResource } from "../operator/plan/observed.ts";
import type { BrokerConnectionOptions, ResolvedConnection } from "../operator/ports.ts";
import type { DurableTimerSpec } from "../resource/durable-timer.ts";
import { connectionSecrets, identitySecret, isEmptySecret, secretKeys, type ConnectionSecrets } from "../resource/secrets.ts";
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
  if (reader.problems.length > 0) return { kind: "missing", problems: reader.problems };
  const workerProblems = await missingForWorkers(api, resource);
  return { kind: "resolved", options, warnings: [], ...(workerProblems.length === 0 ? {} : { workerProblems }) };
}

/** Only what is surely missing counts: a kubelet may well read what the operator could not. */
async function missingForWorkers(api: KubeApi, { key, spec }: ObservedResource): Promise<readonly string[]> {
  const wanted = connectionSecrets(spec, "workers");
  const read = await readAll(api, key.namespace, namesOf(wanted));
  if (read.kind === "failed") return [];
  const reader = new KeyReader(read.found);
  for (const [secretName, secretKey] of secretKeys(wanted)) reader.text(secretName, secretKey);
  return reader.problems;
}

/** Data of a Secret, or undefined when there is no such Secret. */
type Found = ReadonlyMap<string, Readonly<Record<string, string>> | undefined>;

function namesOf(wanted: ConnectionSecrets): readonly string[] {
  return [...new Set(secretKeys(wanted).map(([secretName]) => secretName))];
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

  text(secretName: string, key: string): string {
    const data = this.#found.get(secretName);
    if (data === undefined) this.#problems.add(`Secret ${secretName} does not exist`);
    const text = Buffer.from(data?.[key] ?? "", "base64").toString("utf8");
    if (data !== undefined && isEmptySecret(text)) this.#problems.add(`Secret ${secretName} has no key ${key}`);
    return text;
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
    ...(wanted.auth === undefined ? {} : { auth: identitySecret(wanted.auth, (name, secretKey) => reader.text(name, secretKey)) }),
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
