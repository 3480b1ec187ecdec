// Runs the real bootstrap in small checkouts of its own, with programs on the PATH that record how they were called.

import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Tree } from "../rooms/planted-tree.ts";
import { withTree } from "../rooms/planted-tree.ts";

const root = join(import.meta.dirname, "../..");
const { nats } = JSON.parse(readFileSync(join(root, "scripts/tools.json"), "utf8")) as { readonly nats: Readonly<Record<string, { readonly module: string }>> };
const recommended = String(nats["recommended"]?.module);

/** A checkout in which the packages are installed and no server is. */
const checkout: Tree = {
  "scripts/bootstrap.mjs": readFileSync(join(root, "scripts/bootstrap.mjs"), "utf8"),
  "scripts/tools.json": readFileSync(join(root, "scripts/tools.json"), "utf8"),
  "package-lock.json": JSON.stringify({ packages: { "": {}, "node_modules/a": { version: "1.0.0" }, "node_modules/b": { version: "1.0.0", optional: true } } }),
  "node_modules/.package-lock.json": JSON.stringify({ packages: { "node_modules/a": { version: "1.0.0" } } }),
  "src/bin/demo.ts": 'console.log(`demo with ${process.env["DURABLE_TIMER_NATS_SERVER"]}`);',
};

const serverScript = (version: string): string => `#!/bin/sh\necho "nats-server: v${version}"\n`;

/** Stands in for Go: makes a server that says it is of the version asked for. */
const goScript = `#!/bin/sh\necho "$@" >> "$0.calls"\nversion="\${3##*@v}"\nprintf '#!/bin/sh\\necho nats-server: v%s\\n' "$version" > "$GOBIN/nats-server"\nchmod 755 "$GOBIN/nats-server"\n`;

describe("verbs", () => {
  test("an unknown verb ends with 2 and lists those there are", async () => {
    await withTree(checkout, [], async (dir) => {
      const { exitCode, stderr } = await bootstrap(dir, ["fly"]);
      expect(exitCode).toBe(2);
      expect(stderr).toContain("test:cluster");
    });
  });

  test("the verb's exit code is handed through, and its output is its own", async () => {
    await withTree({ ...checkout, "scripts/generate.ts": 'console.log(process.argv[2]);\nprocess.exitCode = 7;' }, [], async (dir) => {
      expect(await bootstrap(dir, ["generate", "--check"])).toEqual({ exitCode: 7, stdout: "--check\n", stderr: "" });
    });
  });

  test("a signal reaches the verb, which decides about its exit code", async () => {
    const script = 'process.on("SIGTERM", () => process.exit(5));\nsetInterval(() => undefined, 1000);\nconsole.log("ready");';
    await withTree({ ...checkout, "scripts/generate.ts": script }, [], async (dir) => {
      expect(await bootstrap(dir, ["generate"], { signalOnOutput: "SIGTERM" })).toEqual({ exitCode: 5, stdout: "ready\n", stderr: "" });
    });
  });

  test("a verb that dies of a signal counts as 128 and the signal's number", async () => {
    await withTree({ ...checkout, "scripts/generate.ts": 'process.kill(process.pid, "SIGKILL");' }, [], async (dir) => {
      expect((await bootstrap(dir, ["generate"])).exitCode).toBe(137);
    });
  });
});

describe("packages", () => {
  const npm = '#!/bin/sh\necho "$@" >> "$0.calls"\n';

  test("nothing is installed when the installed packages are those of the lock file", async () => {
    await withTree({ ...checkout, "scripts/generate.ts": "" }, [], async (dir) => {
      program(dir, "npm", npm);
      expect((await bootstrap(dir, ["generate"])).exitCode).toBe(0);
      expect(callsOf(dir, "npm")).toEqual([]);
    });
  });

  test.each([
    { name: "another version", installed: { "node_modules/a": { version: "0.9.0" } } },
    { name: "a missing package", installed: {} },
    { name: "a package too many", installed: { "node_modules/a": { version: "1.0.0" }, "node_modules/c": { version: "1.0.0" } } },
  ])("packages are installed after $name", async ({ installed }) => {
    const tree = { ...checkout, "scripts/generate.ts": "", "node_modules/.package-lock.json": JSON.stringify({ packages: installed }) };
    await withTree(tree, [], async (dir) => {
      program(dir, "npm", npm);
      await bootstrap(dir, ["generate"]);
      expect(callsOf(dir, "npm").map((call) => call.split(" ")[0])).toEqual(["ci"]);
    });
  });

  test("a failed installation ends with 1 and a remedy, and the verb does not run", async () => {
    await withTree({ ...checkout, "scripts/generate.ts": 'console.log("ran");', "node_modules/.package-lock.json": '{ "packages": {} }' }, [], async (dir) => {
      program(dir, "npm", "#!/bin/sh\nexit 1\n");
      const { exitCode, stdout, stderr } = await bootstrap(dir, ["generate"]);
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
      expect(stderr).toContain("package registry");
    });
  });
});

describe("the NATS server", () => {
  test("one on the PATH is used if it is new enough", async () => {
    await withTree(checkout, [], async (dir) => {
      const path = program(dir, "nats-server", serverScript("2.15.7"));
      program(dir, "go", goScript);
      expect(await bootstrap(dir, ["demo"])).toEqual({ exitCode: 0, stdout: `demo with ${path}\n`, stderr: "" });
      expect(callsOf(dir, "go")).toEqual([]);
    });
  });

  test.each(["2.9.10", "2.14.9", "3.0.0"])("one on the PATH of version %s is passed over, and the pinned one is built once", async (version) => {
    await withTree(checkout, [], async (dir) => {
      program(dir, "nats-server", serverScript(version));
      program(dir, "go", goScript);
      const path = join(dir, ".cache/nats", recommended, "nats-server");
      expect((await bootstrap(dir, ["demo"])).stdout).toBe(`demo with ${path}\n`);
      expect(await bootstrap(dir, ["demo"])).toEqual({ exitCode: 0, stdout: `demo with ${path}\n`, stderr: "" });
      expect(callsOf(dir, "go")).toEqual([`install -trimpath github.com/nats-io/nats-server/v2@v${recommended}`]);
      expect(readdirSync(join(dir, ".cache/nats"))).toEqual([recommended]);
    });
  });

  test("two runs at once build it once", async () => {
    await withTree(checkout, [], async (dir) => {
      program(dir, "go", goScript.replace("version=", "sleep 1\nversion="));
      const runs = await Promise.all([bootstrap(dir, ["demo"]), bootstrap(dir, ["demo"])]);
      expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
      expect(callsOf(dir, "go")).toHaveLength(1);
      expect(existsSync(join(dir, ".cache/bootstrap.lock"))).toBe(false);
    });
  });

  test("a lock whose holder died is taken over", async () => {
    const holder = spawnSync(process.execPath, ["--version"]).pid;
    await withTree({ ...checkout, ".cache/bootstrap.lock": String(holder) }, [], async (dir) => {
      program(dir, "go", goScript);
      expect((await bootstrap(dir, ["demo"])).exitCode).toBe(0);
    });
  });

  test("a build that does not work leaves nothing behind and says what to do", async () => {
    await withTree(checkout, [], async (dir) => {
      program(dir, "go", "#!/bin/sh\ntouch $GOBIN/nats-server\nexit 1\n");
      program(dir, "python3", "#!/bin/sh\nexit 1\n");
      const { exitCode, stdout, stderr } = await bootstrap(dir, ["demo"]);
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
      expect(stderr).toContain("DURABLE_TIMER_NATS_SERVER");
      expect(readdirSync(join(dir, ".cache/nats"))).toEqual([]);
    });
  });

  test("a variable names one, and one that is not there is an error", async () => {
    await withTree(checkout, [], async (dir) => {
      const path = program(dir, "my-server", serverScript("2.15.2"));
      expect((await bootstrap(dir, ["demo"], { env: { DURABLE_TIMER_NATS_SERVER: path } })).stdout).toBe(`demo with ${path}\n`);
      const absent = await bootstrap(dir, ["demo"], { env: { DURABLE_TIMER_NATS_SERVER: `${path}-absent` } });
      expect(absent.exitCode).toBe(1);
      expect(absent.stderr).toContain("not an executable file");
    });
  });
});

type Run = { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string };
type RunOptions = { readonly env?: Readonly<Record<string, string>>; readonly signalOnOutput?: NodeJS.Signals };

/** Runs the bootstrap of `dir` with nothing on the PATH but `dir`/path and the few system programs that the stand-ins use. */
async function bootstrap(dir: string, args: readonly string[], { env = {}, signalOnOutput }: RunOptions = {}): Promise<Run> {
  const path = `${join(dir, "path")}:/usr/bin:/bin`;
  const child = spawn(process.execPath, [join(dir, "scripts/bootstrap.mjs"), ...args], { env: { PATH: path, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (data: Buffer) => {
    output.stdout += data.toString();
    if (signalOnOutput !== undefined) child.kill(signalOnOutput);
  });
  child.stderr.on("data", (data: Buffer) => (output.stderr += data.toString()));
  const exitCode = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { exitCode, ...output };
}

function program(dir: string, name: string, text: string): string {
  const path = join(dir, "path", name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

function callsOf(dir: string, name: string): readonly string[] {
  const path = join(dir, "path", `${name}.calls`);
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
}
