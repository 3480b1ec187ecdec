#!/usr/bin/env node
// The command line program.

import { readFileSync } from "node:fs";
import { CommanderError } from "commander";
import { cliProgram } from "../cli/program.ts";
import type { CheckedFile, CliTools, ExitCode, GatheredLocal, LookedLocal, Place } from "../cli/tools.ts";
import { describeFailure, Failure } from "../base/failure.ts";
import { untilAborted } from "../concurrency/until-aborted.ts";
import { lookAtLocal, type LocalNotice } from "../local/local-run.ts";
import { noticeLines } from "../local/notice-text.ts";
import { checkResourceFile } from "../local/resource-file.ts";
import { natsBrokerPort } from "../nats/operator-broker.ts";
import { gather } from "../operator/gather.ts";
import { BrokerSessions } from "../operator/sessions.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { startLocalOperator } from "./local-operator.ts";
import { terminalSignals } from "./terminal-signals.ts";

await main();

async function main(): Promise<void> {
  // A reader that has seen enough, such as head, is no error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => { if (error.code !== "EPIPE") throw error; });
  const tools: CliTools = {
    version: packageVersion(),
    print: (line) => { process.stdout.write(`${line}\n`); },
    complain: (line) => { process.stderr.write(`${line}\n`); },
    exitWith: (code) => { process.exitCode = code; },
    checkFile,
    runLocal,
    gatherLocal,
    lookLocal,
  };
  try {
    await cliProgram(tools).parseAsync(process.argv);
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
    else if (error instanceof Failure) {
      tools.complain(describeFailure(error));
      process.exitCode = error.code === "RESOURCE_INVALID" ? 2 : 1;
    } else throw error;
  }
}

async function runLocal(place: Place): Promise<ExitCode> {
  const { stop, hurry } = terminalSignals();
  const operator = await startLocalOperator(place, (notice) => { print(noticeLines(notice)); });
  hurry.addEventListener("abort", () => {
    operator.run.kill();
    process.exit(1);
  }, { once: true });
  print([`Running; the state is in ${operator.run.stateFolder}. Ctrl-C stops.`]);
  try {
    await Promise.race([operator.ended, untilAborted(stop)]);
    print(["Stopping"]);
    await operator.stop();
  } catch (error) {
    // A bug of ours: the children must not outlive it.
    operator.run.kill();
    throw error;
  }
  return 0;
}

function checkFile(path: string): CheckedFile {
  const file = checkResourceFile(path);
  return file.ok ? { kind: "valid", name: file.manifest.name, usesEmbeddedServer: file.usesEmbeddedServer } : { kind: "refused", problems: file.problems };
}

async function gatherLocal(place: Place): Promise<GatheredLocal> {
  const tools = { clock: systemClock, random: systemRandom };
  const { cluster, found, problems } = look(place);
  if (found === undefined) return { kind: "refused", problems };
  const sessions = new BrokerSessions({ broker: natsBrokerPort(tools), onChange: () => undefined });
  try {
    const { observed } = await gather({ cluster, sessions, ...tools }, found, new AbortController().signal);
    return { kind: "observed", observed };
  } finally {
    await sessions.closeAll();
  }
}

function lookLocal(place: Place): LookedLocal {
  const { found, holder, problems } = look(place);
  if (found === undefined) return { kind: "refused", problems };
  return {
    kind: "found", name: found.key.name, generation: found.generation,
    ...(found.status === undefined ? {} : { status: found.status }), ...(holder === undefined ? {} : { holder }),
  };
}

function look(place: Place) {
  const problems: string[] = [];
  const onNotice = (notice: LocalNotice): void => {
    if (notice.kind === "file_refused") problems.push(...notice.problems);
  };
  const { cluster, resource, holder } = lookAtLocal({ ...place, clock: systemClock, random: systemRandom, onNotice });
  const read = resource.key === undefined ? undefined : resource.read(resource.key);
  return { cluster, holder, problems, found: read?.kind === "found" ? read.resource : undefined };
}

function print(lines: readonly string[]): void {
  const time = new Date().toTimeString().slice(0, 8);
  for (const line of lines) process.stdout.write(`${time}  ${line}\n`);
}

function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { readonly version: string };
  return manifest.version;
}
