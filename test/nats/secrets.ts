/** Secrets for tests: an operator with an account and a user as JWTs, and certificates from an authority of their own. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";

type KeyPair = ReturnType<typeof nkeys.createOperator>;

/** Server configuration of an operator with one account that may use JetStream, and the credentials of its user. */
export function operatorMode(accountName: string): { readonly config: string; readonly credentials: string; readonly accountKey: string } {
  const [operator, system, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount(), nkeys.createUser()];
  const unlimited = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1, mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const operatorJwt = jwt(operator, { sub: operator.getPublicKey(), name: "test", nats: { type: "operator", version: 2, system_account: system.getPublicKey() } });
  const systemJwt = jwt(operator, { sub: system.getPublicKey(), name: "SYS", nats: { type: "account", version: 2, limits: { ...unlimited, mem_storage: 0, disk_storage: 0 } } });
  const accountJwt = jwt(operator, { sub: account.getPublicKey(), name: accountName, nats: { type: "account", version: 2, limits: unlimited } });
  const userJwt = jwt(account, { sub: user.getPublicKey(), name: "worker", nats: { type: "user", version: 2, subs: -1, data: -1, payload: -1 } });
  const config = `operator: ${operatorJwt}\nsystem_account: ${system.getPublicKey()}\nresolver: MEMORY\nresolver_preload: { ${system.getPublicKey()}: ${systemJwt}, ${account.getPublicKey()}: ${accountJwt} }`;
  const seed = new TextDecoder().decode(user.getSeed());
  const credentials = `-----BEGIN NATS USER JWT-----\n${userJwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
  return { config, credentials, accountKey: account.getPublicKey() };
}

function jwt(issuer: KeyPair, claims: Readonly<Record<string, unknown>>): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ typ: "JWT", alg: "ed25519-nkey" })}.${part({ jti: crypto.randomUUID(), iat: 1_700_000_000, iss: issuer.getPublicKey(), ...claims })}`;
  return `${signed}.${Buffer.from(issuer.sign(new TextEncoder().encode(signed))).toString("base64url")}`;
}

/** A user's key pair: the public key for the server's configuration, the seed for the client. */
export function userKey(): { readonly publicKey: string; readonly seed: string } {
  const user = nkeys.createUser();
  return { publicKey: user.getPublicKey(), seed: new TextDecoder().decode(user.getSeed()) };
}

export type Certificates = { readonly ca: string; readonly serverCert: string; readonly serverKey: string; readonly clientCert: string; readonly clientKey: string };

/** Paths of an authority's certificate, and of certificates that it signed for the loopback address and for a client. */
export function certificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), "durable-timer-tls-"));
  const path = (name: string): string => join(folder, name);
  const openssl = (...args: readonly string[]): void => {
    execFileSync("openssl", args, { stdio: "pipe" });
  };
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...newKey, "-keyout", path("ca.key"), "-out", path("ca.crt"), "-days", "2", "-subj", "/CN=test authority");
  const sign = (name: string, extensions: string): void => {
    writeFileSync(path(`${name}.ext`), extensions);
    openssl("req", ...newKey, "-keyout", path(`${name}.key`), "-out", path(`${name}.csr`), "-subj", `/CN=${name}`);
    openssl("x509", "-req", "-in", path(`${name}.csr`), "-CA", path("ca.crt"), "-CAkey", path("ca.key"), "-CAcreateserial", "-days", "2", "-out", path(`${name}.crt`), "-extfile", path(`${name}.ext`));
  };
  sign("server", "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth");
  sign("client", "subjectAltName=DNS:client\nextendedKeyUsage=clientAuth");
  return { ca: path("ca.crt"), serverCert: path("server.crt"), serverKey: path("server.key"), clientCert: path("client.crt"), clientKey: path("client.key") };
}
