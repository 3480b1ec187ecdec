// `npm run prove:faults`: the checks are checked. Each deliberate fault is edited into a copy of the code, and the simulation, or the
// test on real servers that the fault names, must catch it; the table says what caught it. Arguments after `--` select faults whose
// name contains one of them.
//
// F1. A fault that no longer fits the code is an error: the list must follow the code.
// F2. A fault that survives ends the program with 1, and so does a copy without a fault in which something is found.
// F3. As many are tried at once as the machine has cores: each hunt uses one.

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { FAULTS, type Catcher, type Edit, type Fault } from "./prove/faults.ts";
import { root } from "./run-process.ts";

const scheduleCount = 150;
const runMsMax = 600_000;
const huntArgs: readonly string[] = ["test/simulation/hunt.ts", String(scheduleCount)];

type Result = { readonly fault: string; readonly isCaught: boolean; readonly by: string; readonly seconds: number };

await main(process.argv.slice(2).filter((arg) => arg !== "--"));

async function main(words: readonly string[]): Promise<void> {
  const chosen = FAULTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  for (const { name, edits } of FAULTS) for (const one of edits) edited({ ...one, name, path: join(root, one.path) });
  const clean: Result[] = [];
  const results: Result[] = [];
  const tries = [
    ...(words.length === 0 ? [...cleanRuns()] : []).map((none) => async () => clean.push(await tryFault(none))),
    ...chosen.map((fault) => async () => {
      const result = await tryFault(fault);
      console.log(describe(result));
      results.push(result);
    }),
  ];
  await Promise.all(Array.from({ length: availableParallelism() }, async () => {
    for (let next = tries.shift(); next !== undefined; next = tries.shift()) await next();
  }));
  const survivors = results.filter(({ isCaught }) => !isCaught).length;
  const falseAlarms = clean.filter(({ isCaught }) => isCaught);
  for (const alarm of falseAlarms) console.log(`found without a fault: ${alarm.by}`);
  console.log(`\nprove:faults: ${results.length} faults injected, ${results.length - survivors} caught, ${survivors} survived`);
  process.exitCode = survivors === 0 && falseAlarms.length === 0 && results.length > 0 ? 0 : 1;
}

/** One run of each thing that catches faults, with none to catch. */
function cleanRuns(): readonly Fault[] {
  const catchers = new Map(FAULTS.flatMap(({ catcher }) => (catcher === undefined ? [] : [[`${catcher.file} ${catcher.test}`, catcher]])));
  return [{ name: "no fault at all", edits: [] }, ...[...catchers.values()].map((catcher) => ({ name: "no fault at all", edits: [], catcher }))];
}

async function tryFault({ name, edits, catcher }: Fault): Promise<Result> {
  const startedAtMs = Date.now();
  const copy = copyOfTheCode();
  try {
    for (const one of edits) {
      const path = join(copy, one.path);
      writeFileSync(path, edited({ ...one, name, path }));
    }
    const { code, output } = await runIn(copy, catcher === undefined ? huntArgs : testArgs(catcher));
    const result = (isCaught: boolean, by: string): Result => ({ fault: name, isCaught, by, seconds: (Date.now() - startedAtMs) / 1_000 });
    if (code === 0) return result(false, "");
    if (code === null) return result(true, "the run does not end");
    return result(true, catcher === undefined ? foundIn(output) : `${catcher.file}: ${catcher.test}`);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function foundIn(output: string): string {
  const line = output.trim().split("\n").at(-1) ?? "";
  return line.startsWith("\"") ? (JSON.parse(line) as string).split("\n")[0] ?? "" : `the run fails: ${line}`;
}

function copyOfTheCode(): string {
  mkdirSync(join(root, ".cache"), { recursive: true });
  const copy = mkdtempSync(join(root, ".cache", "fault-"));
  for (const part of ["src", "test", "scripts", "vitest.config.ts", "package.json"]) cpSync(join(root, part), join(copy, part), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** The file with the mistake in it (F1). */
function edited({ path, from, to, name }: Edit & { readonly name: string }): string {
  const text = readFileSync(path, "utf8");
  const count = text.split(from).length - 1;
  if (count !== 1) throw new Error(`the fault "${name}" fits ${path} ${count} times: ${from}`);
  return text.replace(from, () => to);
}

function testArgs({ file, test }: Catcher): readonly string[] {
  return ["node_modules/vitest/vitest.mjs", "run", file, ...(test === "" ? [] : ["-t", test])];
}

async function runIn(copy: string, args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, [...args], { cwd: copy, stdio: ["ignore", "pipe", "pipe"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), runMsMax);
  let output = "";
  child.stdout.on("data", (data: Buffer) => { output += data.toString(); });
  child.stderr.on("data", (data: Buffer) => { output += data.toString(); });
  const code = await new Promise<number | null>((resolve) => { child.on("close", resolve); });
  clearTimeout(timer);
  return { code, output };
}

function describe({ fault, isCaught, by, seconds }: Result): string {
  return `${isCaught ? "caught  " : "SURVIVED"} ${seconds.toFixed(0).padStart(4)} s  ${fault.padEnd(58)} ${by.slice(0, 150)}`;
}
