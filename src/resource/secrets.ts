/**
 * Which Secrets a resource names, and which of their keys matter: the one reading of `auth` and `tls` for everybody who
 * mounts, reads or watches them.
 */
import { unreachable } from "../base/assert.ts";
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

/** What a connection proves its identity with. */
export type IdentitySecret =
  | { readonly kind: "credentials"; readonly text: string }
  | { readonly kind: "nkey"; readonly seed: string }
  | { readonly kind: "user"; readonly user: string; readonly password: string }
  | { readonly kind: "token"; readonly token: string };

/** The secret itself, by the one reading of keys for cluster and folder. `read` gives a key's text, and notes what is missing. */
export function identitySecret(source: AuthSource, read: (secretName: string, key: string) => string): IdentitySecret {
  const line = (key: string): string => secretLine(read(source.secretName, key));
  switch (source.kind) {
    case "credentials":
      return { kind: "credentials", text: read(source.secretName, source.key) };
    case "nkey":
      return { kind: "nkey", seed: line(source.key) };
    case "token":
      return { kind: "token", token: line(source.key) };
    case "user":
      return { kind: "user", user: line(source.userKey), password: line(source.passwordKey) };
    default:
      return unreachable(source);
  }
}

/** Without the newline at the end that files made by hand have; a password may begin and end with spaces. */
function secretLine(text: string): string {
  return text.replace(/\r?\n$/, "");
}

/** True for a key that is there and says nothing. */
export function isEmptySecret(text: string): boolean {
  return text.trim() === "";
}

/** Every key that a connection needs, as pairs of Secret and key. */
export function secretKeys({ auth, ca, clientCert }: ConnectionSecrets): readonly (readonly [secretName: string, key: string])[] {
  const ofAuth = auth === undefined ? [] : authKeys(auth).map((key) => [auth.secretName, key] as const);
  const ofCa = ca === undefined ? [] : [[ca.secretName, ca.key] as const];
  const ofCert = clientCert === undefined ? [] : [[clientCert.secretName, clientCert.certKey] as const, [clientCert.secretName, clientCert.keyKey] as const];
  return [...ofAuth, ...ofCa, ...ofCert];
}

/** Keys of a Secret that make up an identity. */
export function authKeys(source: AuthSource): readonly string[] {
  return source.kind === "user" ? [source.userKey, source.passwordKey] : [source.key];
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
