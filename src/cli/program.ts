/** The command line: one verb per file, put together here. */
import { Command, Option } from "commander";
import { plan } from "./plan.ts";
import { status } from "./status.ts";
import type { CliTools, Place } from "./tools.ts";
import { up } from "./up.ts";
import { validate } from "./validate.ts";
import { version } from "./version.ts";

/** The program; `parseAsync` runs one verb. */
export function cliProgram(tools: CliTools): Command {
  const program = new Command("durable-timer")
    .description("Durable timers on NATS JetStream.")
    .showHelpAfterError("(durable-timer --help shows the verbs)")
    .configureOutput({ writeOut: (text) => { tools.print(text.trimEnd()); }, writeErr: (text) => { tools.complain(text.trimEnd()); } })
    .exitOverride();
  placed(program.command("up"), "Run a resource from a file on this machine: reconciles it and its later edits, until Ctrl-C.").action(async (options: PlaceOptions) => {
    await up(tools, placeOf(options));
  });
  placed(program.command("plan"), "Print what would be done for a file, and why, without doing it.").action(async (options: PlaceOptions) => {
    await plan(tools, placeOf(options));
  });
  placed(program.command("status"), "Print the conditions of a file's resource. Exits with 1 unless it is Ready.").action((options: PlaceOptions) => {
    status(tools, placeOf(options));
  });
  program.command("validate").description("Check a file. Exits with 2 when it cannot be used.").addOption(fileOption()).action(({ file }: PlaceOptions) => {
    validate(tools, file);
  });
  program.command("version").description("Print the version.").action(() => { version(tools); });
  return program;
}

type PlaceOptions = { readonly file: string; readonly state?: string };

function placed(command: Command, description: string): Command {
  return command.description(description).addOption(fileOption()).option("--state <folder>", "folder that keeps the state; .durable-timer beside the file when not given");
}

function fileOption(): Option {
  return new Option("-f, --file <path>", "file with one DurableTimer").default("durabletimer.yaml");
}

function placeOf({ file, state }: PlaceOptions): Place {
  return { filePath: file, ...(state === undefined ? {} : { statePath: state }) };
}
