import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { buildImage, buildNodeBaseImage } from "./image.ts";
import { connectNode } from "./node.ts";
import { waitUntil } from "./processes.ts";

const node = connectNode(inject("nodeKubeconfigPath"));
const NAMESPACE = "node-test";
const IMAGE = "localhost/node-test:1";

const DOCKERFILE = `ARG BASE_IMAGE=node:24
FROM \${BASE_IMAGE} AS build
WORKDIR /app
RUN ["node", "--eval", "require('fs').writeFileSync('server.mjs', process.argv[1])", "\
import { createServer } from 'node:http';\
console.log('serving as user ' + process.getuid());\
createServer((_, response) => response.end('served')).listen(8080);\
process.once('SIGTERM', () => process.exit(0));"]
FROM \${BASE_IMAGE}
COPY --from=build /app/ /app/
USER 1000
CMD ["node", "/app/server.mjs"]
`;

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "server", labels: { app: "server" } },
  spec: {
    terminationGracePeriodSeconds: 5,
    containers: [
      {
        name: "server",
        image: IMAGE,
        imagePullPolicy: "IfNotPresent",
        readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 },
        securityContext: { runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      },
    ],
  },
};

const SERVICE = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "server" },
  spec: { selector: { app: "server" }, ports: [{ port: 80, targetPort: 8080 }] },
};

async function kubectl(...args: readonly string[]): Promise<string> {
  return await node.runTool("kubectl", ["--namespace", NAMESPACE, ...args]);
}

/** Runs a JavaScript expression inside the pod and returns what its promise gives. */
async function inPod(expression: string): Promise<string> {
  return (await kubectl("exec", "server", "--", "node", "--eval", `Promise.resolve(${expression}).then(console.log)`)).trim();
}

describe("the node", () => {
  let dir: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "node-test-"));
    const dockerfile = join(dir, "Dockerfile");
    await writeFile(dockerfile, DOCKERFILE);
    await node.loadImage(await buildImage({ dockerfile, tag: IMAGE, buildArgs: { BASE_IMAGE: await buildNodeBaseImage() } }));
    await node.runTool("kubectl", ["create", "namespace", NAMESPACE]);
    const manifestPath = join(dir, "objects.json");
    await writeFile(manifestPath, JSON.stringify({ apiVersion: "v1", kind: "List", items: [POD, SERVICE] }));
    await kubectl("apply", "--filename", manifestPath);
    await kubectl("wait", "pod/server", "--for=condition=Ready", "--timeout=60s");
  });

  afterAll(async () => {
    await node.runTool("kubectl", ["delete", "namespace", NAMESPACE, "--timeout=60s"]);
    await rm(dir, { recursive: true });
  });

  it("runs a pod of an image built here and gives its logs back through the API", async () => {
    expect(await kubectl("logs", "server")).toBe("serving as user 1000\n");
  });

  it("lets the machine and the pod reach a Service", async () => {
    const address = await kubectl("get", "service", "server", "--output", "jsonpath={.spec.clusterIP}");
    await waitUntil({
      what: "the Service answers the machine",
      probe: async () => (await (await fetch(`http://${address}`)).text()) === "served",
      timeoutMs: 30_000,
    });
    expect(await inPod(`fetch('http://${address}').then((answer) => answer.text())`)).toBe("served");
  });

  it("lets a pod reach what listens on the machine", async () => {
    const server = createServer((_, response) => response.end("from the machine")).listen(0, node.hostAddress);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    expect(await inPod(`fetch('http://${node.hostAddress}:${port}').then((answer) => answer.text())`)).toBe("from the machine");
    server.close();
    server.closeAllConnections();
  });

  it("lets a pod use the API with the token and the certificate that it was given", async () => {
    const call = `new Promise((resolve, reject) => {
      const dir = '/var/run/secrets/kubernetes.io/serviceaccount/';
      const read = (name) => require('fs').readFileSync(dir + name, 'utf8');
      require('https').get({
        agent: false, host: process.env.KUBERNETES_SERVICE_HOST, port: process.env.KUBERNETES_SERVICE_PORT,
        path: '/api/v1/namespaces/${NAMESPACE}/pods', ca: read('ca.crt'), headers: { authorization: 'Bearer ' + read('token') },
      }, (answer) => resolve(answer.destroy().statusCode)).on('error', reject);
    })`;
    // Nobody gave this account a right: being refused by name shows that it was recognised.
    expect(await inPod(call)).toBe("403");
  });

  it("ends a deleted pod by its signal, within its grace", async () => {
    const startedAtMs = Date.now();
    await kubectl("delete", "pod", "server", "--timeout=20s");
    expect(Date.now() - startedAtMs).toBeLessThan(5_000);
  });
});
