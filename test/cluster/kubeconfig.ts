/** Kubeconfig files, self-contained: certificates and keys are embedded, so that one may be copied. */
import { readFile, writeFile } from "node:fs/promises";
import { parse, stringify } from "yaml";
import type { KeyPair } from "./certificates.ts";

/** How to reach an API server, and as whom. */
export type Connection = {
  readonly serverUrl: string;
  readonly authorityPem: string;
  readonly credentials: Credentials;
};

export type Credentials = { readonly token: string } | { readonly certificatePem: string; readonly keyPem: string };

/** Reads a certificate and its key into credentials. */
export async function certificateCredentials(pair: KeyPair): Promise<Credentials> {
  return {
    certificatePem: await readFile(pair.certificatePath, "utf8"),
    keyPem: await readFile(pair.keyPath, "utf8"),
  };
}

/** Writes a kubeconfig with one cluster, one user and one context. */
export async function writeKubeconfig(path: string, { serverUrl, authorityPem, credentials }: Connection): Promise<void> {
  const user =
    "token" in credentials
      ? { token: credentials.token }
      : {
          "client-certificate-data": toBase64(credentials.certificatePem),
          "client-key-data": toBase64(credentials.keyPem),
        };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: NAME, cluster: { server: serverUrl, "certificate-authority-data": toBase64(authorityPem) } }],
    users: [{ name: NAME, user }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME } }],
    "current-context": NAME,
  };
  await writeFile(path, stringify(kubeconfig), { mode: 0o600 });
}

/** Reads a kubeconfig that writeKubeconfig wrote; other shapes are not understood. */
export async function readKubeconfig(path: string): Promise<Connection> {
  const file = parse(await readFile(path, "utf8")) as KubeconfigFile;
  const [{ cluster }] = file.clusters;
  const [{ user }] = file.users;
  return {
    serverUrl: cluster.server,
    authorityPem: fromBase64(cluster["certificate-authority-data"]),
    credentials:
      "token" in user
        ? { token: user.token }
        : {
            certificatePem: fromBase64(user["client-certificate-data"]),
            keyPem: fromBase64(user["client-key-data"]),
          },
  };
}

type KubeconfigFile = {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly "certificate-authority-data": string } },
  ];
  readonly users: readonly [
    {
      readonly user:
        | { readonly token: string }
        | { readonly "client-certificate-data": string; readonly "client-key-data": string };
    },
  ];
};

function toBase64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

function fromBase64(text: string): string {
  return Buffer.from(text, "base64").toString("utf8");
}

const NAME = "test-bed";
