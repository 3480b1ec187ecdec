/** The DurableTimer resource as rooms see it: metadata, spec with every default filled in, status. */
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

export type DurableTimerStatus = DeepReadonly<z.output<typeof statusSchema>>;

/** The part of Kubernetes' object metadata that is used. */
export type DurableTimerMetadata = {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly generation: number;
  readonly resourceVersion: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** RFC 3339; present once deletion was asked for. */
  readonly deletionTimestamp?: string;
};

export type DurableTimer = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: DurableTimerMetadata;
  readonly spec: DurableTimerSpec;
  readonly status?: DurableTimerStatus;
};
