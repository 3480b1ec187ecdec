/** Secrets on a real API server, with exactly the rights that the chart gives. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openClusterBed, type ClusterBed } from "./cluster-bed.ts";

let bed: ClusterBed;

beforeAll(async () => {
  bed = await openClusterBed("secrets");
});

afterAll(async () => {
  await bed.close();
});

describe("the connection", () => {
  async function createSecret(name: string, stringData: Readonly<Record<string, string>>): Promise<void> {
    await bed.namespace.admin({ method: "POST", path: `/api/v1/namespaces/${bed.namespace.name}/secrets`, body: { metadata: { name }, stringData } });
  }

  test("is resolved from the Secrets that the resource names", async () => {
    await createSecret("creds", { "user.creds": "-----BEGIN NATS USER JWT-----\n" });
    await createSecret("ca", { "ca.crt": "pem" });
    const nats = { servers: ["tls://a:4222"], jetStreamDomain: "hub", auth: { credentialsSecretRef: { name: "creds" } }, tls: { caSecretRef: { name: "ca" } } };
    expect(await bed.cluster.resolveConnection(await bed.createTimer("secrets", { nats }))).toEqual({
      kind: "resolved",
      warnings: [],
      options: {
        servers: ["tls://a:4222"],
        name: `durable-timer-operator ${bed.namespace.name}/secrets`,
        domain: "hub",
        auth: { kind: "credentials", text: "-----BEGIN NATS USER JWT-----\n" },
        tls: { ca: "pem", handshakeFirst: false },
      },
    });
  });

  test("of a hand-made Secret has no newline at its end", async () => {
    await createSecret("login", { username: "me\n", password: " p w \n" });
    const nats = { auth: { userPasswordSecretRef: { name: "login" } } };
    expect(await bed.cluster.resolveConnection(await bed.createTimer("login", { nats }))).toMatchObject({ options: { auth: { kind: "user", user: "me", password: " p w " } } });
  });

  test("tells what the workers' own identity lacks, before any pod waits for it", async () => {
    await createSecret("op", { token: "t" });
    const timer = await bed.createTimer("ofworkers", { nats: { auth: { tokenSecretRef: { name: "op" } } }, workers: { auth: { credentialsSecretRef: { name: "dt-worker" } } } });
    expect(await bed.cluster.resolveConnection(timer)).toMatchObject({ kind: "resolved", workerProblems: ["Secret dt-worker does not exist"] });
    await createSecret("dt-worker", { "user.creds": "x" });
    expect(await bed.cluster.resolveConnection(timer)).not.toHaveProperty("workerProblems");
  });

  test("names everything that is missing at once", async () => {
    await createSecret("empty", { other: "x" });
    const nats = { auth: { tokenSecretRef: { name: "absent" } }, tls: { clientCertSecretRef: { name: "empty" } } };
    expect(await bed.cluster.resolveConnection(await bed.createTimer("missing", { nats }))).toEqual({
      kind: "missing",
      problems: ["Secret absent does not exist", "Secret empty has no key tls.crt", "Secret empty has no key tls.key"],
    });
  });
});
