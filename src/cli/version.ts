import type { CliTools } from "./tools.ts";

export function version(tools: CliTools): void {
  tools.print(`durable-timer ${tools.version}`);
  tools.exitWith(0);
}
