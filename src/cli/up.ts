import type { CliTools, Place } from "./tools.ts";

/** Runs a file's resource until the process is told to stop. */
export async function up(tools: CliTools, place: Place): Promise<void> {
  tools.exitWith(await tools.runLocal(place));
}
