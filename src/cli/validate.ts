import type { CliTools } from "./tools.ts";

/** Checks a file as `up` would read it. */
export function validate(tools: CliTools, path: string): void {
  const checked = tools.checkFile(path);
  if (checked.kind === "refused") {
    complainOfFile(tools, path, checked.problems);
    return;
  }
  const broker = checked.usesEmbeddedServer ? "with an embedded NATS server" : "on the servers that it names";
  tools.print(`${path}: DurableTimer ${checked.name} is valid and runs ${broker}`);
  tools.exitWith(0);
}

/** Says why a file cannot be used, one problem per line. */
export function complainOfFile(tools: CliTools, path: string, problems: readonly string[]): void {
  tools.complain(`${path} cannot be used:`);
  for (const problem of problems) tools.complain(`  - ${problem}`);
  tools.exitWith(2);
}
