/**
 * A certificate authority for one run, and certificates signed by it, made with openssl.
 * Elliptic curve keys: an RSA key would cost more than the rest of the start-up together.
 */
import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

export type KeyPair = { readonly certificatePath: string; readonly keyPath: string };

export type Authority = KeyPair & { readonly dir: string };

/** Who a certificate speaks for. Kubernetes reads the organisation as the group. */
export type Subject = {
  readonly commonName: string;
  readonly organization?: string;
  /** Names and addresses of a server; without any, the certificate is a client's. */
  readonly hosts?: readonly string[];
};

/** Makes an authority whose files lie in `dir`, which must exist. */
export async function createAuthority(dir: string): Promise<Authority> {
  const pair = pathsIn(dir, "ca");
  await writeFile(configPath(dir), OPENSSL_CONFIG);
  await openssl([
    ...request(dir, pair),
    ...["-subj", "/CN=test-bed"],
    ...["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"],
  ]);
  return { dir, ...pair };
}

/** Makes `<name>.crt` and `<name>.key` beside the authority's own files. */
export async function issueCertificate(authority: Authority, name: string, subject: Subject): Promise<KeyPair> {
  const pair = pathsIn(authority.dir, name);
  const hosts = subject.hosts ?? [];
  const alternatives = hosts.map((host) => `${/^[\d.]+$/.test(host) ? "IP" : "DNS"}:${host}`);
  await openssl([
    ...request(authority.dir, pair),
    ...["-CA", authority.certificatePath, "-CAkey", authority.keyPath],
    ...["-subj", `${subject.organization === undefined ? "" : `/O=${subject.organization}`}/CN=${subject.commonName}`],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
    ...["-addext", `extendedKeyUsage=${hosts.length > 0 ? "serverAuth" : "clientAuth"}`],
    ...(hosts.length > 0 ? ["-addext", `subjectAltName=${alternatives.join(",")}`] : []),
  ]);
  return pair;
}

/** Writes a private key for signing service account tokens, and returns its path. */
export async function writeTokenKey(dir: string): Promise<string> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const path = join(dir, "tokens.key");
  await writeFile(path, privateKey.export({ type: "sec1", format: "pem" }), { mode: 0o600 });
  return path;
}

function request(dir: string, pair: KeyPair): string[] {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", pair.keyPath];
  return ["req", "-x509", "-config", configPath(dir), ...key, "-days", "365", "-out", pair.certificatePath];
}

async function openssl(args: readonly string[]): Promise<void> {
  await promisify(execFile)("openssl", args);
}

function pathsIn(dir: string, name: string): KeyPair {
  return { certificatePath: join(dir, `${name}.crt`), keyPath: join(dir, `${name}.key`) };
}

function configPath(dir: string): string {
  return join(dir, "openssl.cnf");
}

/** The system's own configuration would add extensions of an authority to every certificate. */
const OPENSSL_CONFIG = "[req]\ndistinguished_name = subject\n[subject]\n";
