/**
 * Secrets of local mode: the folder `secrets` beside the resource's file, one folder per Secret, one file per key. The
 * same references as in a cluster lead there.
 */
import { join } from "node:path";
import type { BrokerConnectionOptions, ResolvedConnection } from "../operator/ports.ts";
import type { DurableTimerSpec } from "../resource/durable-timer.ts";
import { connectionSecrets, identitySecret, isEmptySecret, secretKeys } from "../resource/secrets.ts";
import type { SecretFolders } from "../resource/worker-config.ts";
import { readTextFile } from "./state-files.ts";

/** The connection that `spec.nats` describes for the operator's own identity, with what the folder holds. */
export function resolveFromFolder(spec: DurableTimerSpec, folder: string): ResolvedConnection {
  const reader = new SecretReader(folder);
  const { servers, jetStreamDomain } = spec.nats;
  const { auth } = connectionSecrets(spec, "operator");
  const options: BrokerConnectionOptions = {
    servers,
    name: "durable-timer-operator",
    ...(jetStreamDomain === undefined ? {} : { domain: jetStreamDomain }),
    ...(auth === undefined ? {} : { auth: identitySecret(auth, (secretName, key) => reader.read(secretName, key)) }),
    ...readTls(spec, reader),
  };
  if (reader.problems.length > 0) return { kind: "missing", problems: reader.problems };
  const ofWorkers = new SecretReader(folder);
  for (const [secretName, key] of secretKeys(connectionSecrets(spec, "workers"))) ofWorkers.read(secretName, key);
  return { kind: "resolved", options, warnings: [], ...(ofWorkers.problems.length === 0 ? {} : { workerProblems: ofWorkers.problems }) };
}

/** Where a worker finds the files of its Secrets. */
export function workerSecretFolders(spec: DurableTimerSpec, folder: string): SecretFolders {
  const { auth, ca, clientCert } = connectionSecrets(spec, "workers");
  const folderOf = (secret: { readonly secretName: string } | undefined): string => join(folder, secret?.secretName ?? "");
  return { auth: folderOf(auth), ca: folderOf(ca), clientCert: folderOf(clientCert) };
}

/** The files that the connections of operator and workers read, for noticing a rotation. */
export function secretFiles(spec: DurableTimerSpec, folder: string): readonly string[] {
  const reader = new SecretReader(folder);
  for (const who of ["operator", "workers"] as const) {
    for (const [secretName, key] of secretKeys(connectionSecrets(spec, who))) reader.read(secretName, key);
  }
  return [...new Set(reader.paths)];
}

/** Reads keys of Secrets and remembers what was not there. */
class SecretReader {
  readonly problems: string[] = [];
  readonly paths: string[] = [];
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  read(secretName: string, key: string): string {
    const path = join(this.#folder, secretName, key);
    this.paths.push(path);
    const text = readTextFile(path);
    if (text === undefined || isEmptySecret(text)) this.problems.push(`Secret ${secretName} has no key ${key}: write it to ${path}`);
    return text ?? "";
  }
}

function readTls(spec: DurableTimerSpec, reader: SecretReader): Pick<BrokerConnectionOptions, "tls"> {
  const { tls } = spec.nats;
  if (tls === undefined) return {};
  const { ca, clientCert } = connectionSecrets(spec, "operator");
  return {
    tls: {
      ...(ca === undefined ? {} : { ca: reader.read(ca.secretName, ca.key) }),
      ...(clientCert === undefined
        ? {}
        : { cert: reader.read(clientCert.secretName, clientCert.certKey), key: reader.read(clientCert.secretName, clientCert.keyKey) }),
      handshakeFirst: tls.handshakeFirst ?? false,
    },
  };
}
