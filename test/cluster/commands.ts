/** Runs a program of the machine to its end. */
import { execFile } from "node:child_process";

export type CommandOptions = {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
};

/** Standard output of a program that succeeded; otherwise an error that quotes what it said. */
export async function runCommand(program: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`, ...options.env };
  return await new Promise((resolve, reject) => {
    execFile(program, args, { ...options, env, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${program} ${args.join(" ")}:\n${stderr.slice(-ERROR_LENGTH_MAX)}`, { cause: error }));
    });
  });
}

/** Whether a program succeeds; for questions to the machine. */
export async function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  try {
    await runCommand(program, args);
    return true;
  } catch {
    return false;
  }
}

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const ERROR_LENGTH_MAX = 4_000;
