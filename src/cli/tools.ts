/** What verbs are given: everything that touches the outside comes from the composition root. */
import type { Observed } from "../operator/plan/observed.ts";
import type { DurableTimerStatus } from "../resource/durable-timer.ts";

/** Which resource a verb is about, and where its state lies. */
export type Place = {
  readonly filePath: string;
  /** The folder beside the file when absent. */
  readonly statePath?: string;
};

/** A file that was checked; each problem names the field or line and the remedy. */
export type CheckedFile =
  | { readonly kind: "valid"; readonly name: string; readonly usesEmbeddedServer: boolean }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

/** All that a plan is made from. */
export type GatheredLocal =
  | { readonly kind: "observed"; readonly observed: Observed }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

/** A resource as local mode keeps it. */
export type LookedLocal =
  | {
      readonly kind: "found";
      readonly name: string;
      readonly generation: number;
      /** Absent when it never ran. */
      readonly status?: DurableTimerStatus;
      /** The process that runs it now; absent when none does. */
      readonly holder?: number;
    }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

export type CliTools = {
  readonly version: string;
  /** One line on standard output. */
  readonly print: (line: string) => void;
  /** One line on standard error. */
  readonly complain: (line: string) => void;
  /** Sets the exit code of the process. */
  readonly exitWith: (code: ExitCode) => void;
  readonly checkFile: (path: string) => CheckedFile;
  /** Runs until it is told to stop. */
  readonly runLocal: (place: Place) => Promise<ExitCode>;
  /** Looks at the broker and the workers of a file's resource without changing anything. */
  readonly gatherLocal: (place: Place) => Promise<GatheredLocal>;
  readonly lookLocal: (place: Place) => LookedLocal;
};

/** 0: as asked. 1: not so, or not possible. 2: the command line or the file cannot be used. */
export type ExitCode = 0 | 1 | 2;
