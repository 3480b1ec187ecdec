/**
 * Which Secrets a resource names, and which of their keys matter: the one reading of `auth` and `tls` for everybody who
 * mounts, reads or watches them.
 */
import type { DurableTimerSpec } from "./durable-timer.ts";

/** Where an identity comes from. `keys` are within the Secret. */
export type AuthSource =
  | { readonly kind: "credentials" | "nkey" | "token"; readonly secretName: string; readonly key: string }
  | { readonly kind: "user"; readonly secretName: string; readonly userKey: string; readonly passwordKey: string };

/** Everything secret that one connection needs. */
export type ConnectionSecrets = {
  readonly auth?: AuthSource;
  readonly ca?: { readonly secretName: string; readonly key: string };
  /** Keys are those of the Secret type kubernetes.io/tls. */
  readonly clientCert?: { readonly secretName: string; readonly certKey: string; readonly keyKey: string };
};

/** Secrets of the operator's connections or of the workers'. */
export function connectionSecrets(spec: DurableTimerSpec, who: "operator" | "workers"): ConnectionSecrets {
  const { tls } = spec.nats;
  const operator = authSource(spec.nats.auth);
  // An empty auth of the workers is no wish to be anonymous: it would cut them off from a broker that asks who they are.
  const auth = who === "operator" ? operator : (authSource(spec.workers.auth) ?? operator);
  return {
    ...(auth === undefined ? {} : { auth }),
    ...(tls?.caSecretRef === undefined ? {} : { ca: { secretName: tls.caSecretRef.name, key: tls.caSecretRef.key ?? defaultKeys.ca } }),
    ...(tls?.clientCertSecretRef === undefined
      ? {}
      : { clientCert: { secretName: tls.clientCertSecretRef.name, certKey: defaultKeys.cert, keyKey: defaultKeys.certKey } }),
  };
}

/** Names of all Secrets that a resource uses, sorted, each once. */
export function secretNamesOf(spec: DurableTimerSpec): readonly string[] {
  const sources = [connectionSecrets(spec, "operator"), connectionSecrets(spec, "workers")];
  const names = sources.flatMap(({ auth, ca, clientCert }) => [auth?.secretName, ca?.secretName, clientCert?.secretName]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

/** True when the workers use the operator's identity, which has more rights than they need. */
export function workersShareIdentity(spec: DurableTimerSpec): boolean {
  return authSource(spec.nats.auth) !== undefined && authSource(spec.workers.auth) === undefined;
}

function authSource(auth: DurableTimerSpec["nats"]["auth"]): AuthSource | undefined {
  const { credentialsSecretRef, nkeySecretRef, tokenSecretRef, userPasswordSecretRef } = auth ?? {};
  if (credentialsSecretRef !== undefined) return single("credentials", credentialsSecretRef);
  if (nkeySecretRef !== undefined) return single("nkey", nkeySecretRef);
  if (tokenSecretRef !== undefined) return single("token", tokenSecretRef);
  return userPasswordSecretRef === undefined ? undefined : userPassword(userPasswordSecretRef);
}

function userPassword(ref: { readonly name: string; readonly userKey?: string; readonly passwordKey?: string }): AuthSource {
  return { kind: "user", secretName: ref.name, userKey: ref.userKey ?? defaultKeys.user, passwordKey: ref.passwordKey ?? defaultKeys.password };
}

function single(kind: "credentials" | "nkey" | "token", ref: { readonly name: string; readonly key?: string }): AuthSource {
  return { kind, secretName: ref.name, key: ref.key ?? defaultKeys[kind] };
}

/** Keys that are meant when a reference names none. */
export const defaultKeys = {
  credentials: "user.creds",
  nkey: "user.nk",
  token: "token",
  user: "username",
  password: "password",
  ca: "ca.crt",
  cert: "tls.crt",
  certKey: "tls.key",
} as const;
