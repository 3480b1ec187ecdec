import type { CliTools } from "./tools.ts";

/** Prints name and version of the program. */
export function version(tools: CliTools): void {
  tools.print(`durable-timer ${tools.version}`);
  tools.exitWith(0);
}
