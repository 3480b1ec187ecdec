import type { CliTools } from "./tools.ts";

/** Says why a file cannot be used, one problem per line. */
export function complainOfFile(tools: CliTools, path: string, problems: readonly string[]): void {
  tools.complain(`${path} cannot be used:`);
  for (const problem of problems) tools.complain(`  - ${problem}`);
  tools.exitWith(2);
}
