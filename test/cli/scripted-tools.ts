// Tools of the command line whose answers a test writes down, and which keep what was printed.

import type { CheckedFile, CliTools, ExitCode, GatheredLocal, LookedLocal, Place } from "../../src/cli/tools.ts";

export class ScriptedTools {
  readonly out: string[] = [];
  readonly err: string[] = [];
  /** What was asked, in order. */
  readonly asked: string[] = [];
  exitCode: ExitCode | undefined;
  checked: CheckedFile = { kind: "valid", name: "orders", usesEmbeddedServer: true };
  gathered: GatheredLocal = { kind: "refused", problems: ["nothing was gathered"] };
  looked: LookedLocal = { kind: "refused", problems: ["nothing was looked at"] };
  runResult: ExitCode = 0;

  asTools(): CliTools {
    const ask = (what: string, { filePath, statePath }: Place): void => { this.asked.push([what, filePath, ...(statePath === undefined ? [] : [statePath])].join(" ")); };
    return {
      version: "1.2.3",
      print: (line) => { this.out.push(line); },
      complain: (line) => { this.err.push(line); },
      exitWith: (code) => { this.exitCode = code; },
      checkFile: (filePath) => {
        ask("check", { filePath });
        return this.checked;
      },
      runLocal: (place) => {
        ask("run", place);
        return Promise.resolve(this.runResult);
      },
      gatherLocal: (place) => {
        ask("gather", place);
        return Promise.resolve(this.gathered);
      },
      lookLocal: (place) => {
        ask("look", place);
        return this.looked;
      },
    };
  }
}
