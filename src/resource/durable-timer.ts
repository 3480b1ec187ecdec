/** The DurableTimer resource as rooms see it: spec with every default filled in, and status. */
import type { z } from "zod";
import type { specSchema } from "./spec.ts";
import type { statusSchema } from "./status.ts";

/** A value that nobody changes, at any depth. */
export type DeepReadonly<T> = T extends string | number | boolean
  ? T
  : T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/** A valid spec: defaults filled in, sizes in bytes. */
export type DurableTimerSpec = DeepReadonly<z.output<typeof specSchema>>;

/** A status as the operator writes and reads it. */
export type DurableTimerStatus = DeepReadonly<z.output<typeof statusSchema>>;
