/**
 * Reads a resource that somebody wrote: for local mode, where no API server has checked it, and once more in the operator,
 * whose CRD may be of another release.
 *
 * V1 Nothing here throws, whatever the document holds.
 * V2 Unknown fields are ignored by `parseSpec`, since a newer CRD may know them, and refused by `parseManifest`, where they
 *    are mistakes of a person.
 */
import { z } from "zod";
import type { DurableTimerSpec } from "./durable-timer.ts";
import { apiVersion, kind } from "./names.ts";
import { problemsOf, type Problem } from "./problems.ts";
import { brokenRules, nameRule } from "./rules.ts";
import { specSchema } from "./spec.ts";
import { unknownFields } from "./unknown-fields.ts";

/** A valid spec, or everything that is wrong with it. */
export type ParsedSpec =
  | { readonly ok: true; readonly spec: DurableTimerSpec }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A manifest as a person writes it. */
export type Manifest = {
  readonly name: string;
  readonly namespace?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: DurableTimerSpec;
};

/** A valid manifest, or everything that is wrong with it. */
export type ParsedManifest =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Reads a spec, fills in the defaults and checks every rule. */
export function parseSpec(value: unknown): ParsedSpec {
  const read = specSchema.safeParse(value, { reportInput: true });
  if (!read.success) return { ok: false, problems: problemsOf(read.error, ["spec"]) };
  const problems = brokenRules(read.data);
  return problems.length === 0 ? { ok: true, spec: read.data } : { ok: false, problems };
}

/** Reads a whole manifest, as parsed from YAML or JSON. */
export function parseManifest(value: unknown): ParsedManifest {
  const read = manifestSchema.safeParse(value, { reportInput: true });
  if (!read.success) return { ok: false, problems: problemsOf(read.error, []) };
  const parsed = parseSpec(read.data.spec);
  const unknown = [...unknownFields(value, manifestSchema, []), ...unknownFields(read.data.spec, specSchema, ["spec"])];
  const problems = [...(parsed.ok ? [] : parsed.problems), ...unknown];
  if (!parsed.ok || problems.length > 0) return { ok: false, problems };
  const { name, namespace, labels, annotations } = read.data.metadata;
  return { ok: true, manifest: { name, ...(namespace === undefined ? {} : { namespace }), labels: labels ?? {}, annotations: annotations ?? {}, spec: parsed.spec } };
}

const dnsSubdomain = z.string().min(1).regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/);
const ignored = z.exactOptional(z.unknown());
const textMap = z.exactOptional(z.record(z.string(), z.string()));

const manifestSchema = z.object({
  apiVersion: z.literal(apiVersion),
  kind: z.literal(kind),
  metadata: z.object({
    name: dnsSubdomain.refine(nameRule.holds, { error: nameRule.problem }),
    namespace: z.exactOptional(dnsSubdomain),
    labels: textMap,
    annotations: textMap,
    // What a cluster adds to a resource that is exported from it.
    uid: ignored,
    resourceVersion: ignored,
    generation: ignored,
    creationTimestamp: ignored,
    managedFields: ignored,
  }),
  spec: z.looseObject({}),
  status: ignored,
});
