/**
 * Rules between fields, and rules for changes. Each exists twice: as CEL, which the API server evaluates, and as a
 * function, which everybody else calls. One table of examples is run against both.
 *
 * A rule names the field that is wrong, so that a refused resource says where.
 */
import type { DurableTimerSpec } from "./durable-timer.ts";
import { reservedVariablePrefix } from "./names.ts";
import { resourceBounds as bounds } from "./bounds.ts";
import type { Problem } from "./problems.ts";

/** A rule about one spec. */
export type SpecRule = {
  /** Path below `spec` of the node that the CEL expression calls `self`. */
  readonly at: string;
  /** Field within that node which is reported; the node itself when absent. */
  readonly field?: string;
  readonly cel: string;
  /** Continues a sentence that begins with the field. */
  readonly problem: string;
  readonly holds: (spec: DurableTimerSpec) => boolean;
};

/** A rule about a change of a spec. */
export type ChangeRule = {
  /** Path below `spec`; the CEL expression calls the old value `oldSelf`. */
  readonly at: string;
  readonly field?: string;
  readonly cel: string;
  readonly problem: string;
  readonly allows: (previous: DurableTimerSpec, next: DurableTimerSpec) => boolean;
};

/** Optional text fields that can be neither added, changed nor removed, as paths below `spec`. */
export const immutablePaths: readonly string[] = ["nats.jetStreamDomain"];

const authFields = ["credentialsSecretRef", "nkeySecretRef", "userPasswordSecretRef", "tokenSecretRef"] as const;

/** Rules about one spec; exported for the CRD and for the table of examples. */
export const specRules: readonly SpecRule[] = [
  oneAuthAtMost("nats.auth", (spec) => spec.nats.auth),
  oneAuthAtMost("workers.auth", (spec) => spec.workers.auth),
  {
    at: "topology.replicas",
    cel: "self in [1, 3, 5]",
    problem: "must be 1, 3 or 5",
    holds: (spec) => [1, 3, 5].includes(spec.topology.replicas),
  },
  {
    at: "topology.adoption",
    field: "fromOwner",
    cel: "self.policy != 'FromOwner' || (has(self.fromOwner) && self.fromOwner != '')",
    problem: "must name an owner when the policy is FromOwner",
    holds: ({ topology: { adoption } }) => adoption.policy !== "FromOwner" || (adoption.fromOwner ?? "") !== "",
  },
  {
    at: "admission",
    field: "reopenPercent",
    cel: "self.reopenPercent < self.closePercent",
    problem: "must be less than closePercent",
    holds: ({ admission }) => admission.reopenPercent < admission.closePercent,
  },
  {
    at: "sweep",
    field: "graceSeconds",
    cel: "self.graceSeconds < self.intervalSeconds",
    problem: "must be less than intervalSeconds",
    holds: ({ sweep }) => sweep.graceSeconds < sweep.intervalSeconds,
  },
  ...(["afterSeconds", "dedupeSeconds"] as const).map((field) => ({
    at: "retention.archive",
    field,
    cel: `self.policy != 'Expire' || has(self.${field})`,
    problem: "is required when the policy is Expire",
    holds: ({ retention: { archive } }: DurableTimerSpec) => archive.policy !== "Expire" || archive[field] !== undefined,
  })),
  {
    at: "workers",
    field: "progressDeadlineSeconds",
    cel: "self.progressDeadlineSeconds > self.minReadySeconds",
    problem: "must be more than minReadySeconds",
    holds: ({ workers }) => workers.progressDeadlineSeconds > workers.minReadySeconds,
  },
  {
    at: "workers.podTemplate.spec.env",
    cel: `self.all(variable, !variable.name.startsWith('${reservedVariablePrefix}'))`,
    problem: `must not set variables with names that begin with ${reservedVariablePrefix}`,
    holds: ({ workers }) => (workers.podTemplate?.spec?.env ?? []).every((variable) => !variable.name.startsWith(reservedVariablePrefix)),
  },
];

/** Rules about a change. */
export const changeRules: readonly ChangeRule[] = immutablePaths.map(immutable);

/** A field of the list as it was when the streams were made; empty when it was not set. */
type AppliedValue = { readonly path: string; readonly value: string };

/** What a status keeps of a spec, to compare later specs with. */
export function appliedValues(spec: DurableTimerSpec): readonly AppliedValue[] {
  return immutablePaths.map((path) => ({ path, value: textAt(spec, path) }));
}

/** Fields that are no longer what was applied, also where no API server judges changes; empty when nothing was applied yet. */
export function changedSinceApplied(applied: readonly AppliedValue[] | undefined, spec: DurableTimerSpec): readonly Problem[] {
  const changed = (applied ?? []).filter(({ path, value }) => immutablePaths.includes(path) && textAt(spec, path) !== value);
  return changed.map(({ path, value }) => ({ field: `spec.${path}`, problem: value === "" ? "was not set when the streams were made" : `was ${value} when the streams were made` }));
}

/** CEL for the size of a stream, attached to each `maxBytes`; quantity.ts checks the same on parsing. */
export const sizeRule = {
  cel: `type(self) == int ? (self >= ${String(bounds.streamBytesMin)} && self <= ${String(Number.MAX_SAFE_INTEGER)}) : (quantity(self).compareTo(quantity('${String(bounds.streamBytesMin)}')) >= 0 && quantity(self).compareTo(quantity('${String(Number.MAX_SAFE_INTEGER)}')) <= 0)`,
  problem: "must be at least 2Mi and at most 2^53 - 1 bytes",
} as const;

/** CEL for the resource's name, attached to the root; validate.ts checks the same. */
export const nameRule = {
  cel: `self.metadata.name.size() <= ${String(bounds.resourceNameCharsMax)}`,
  problem: `must be at most ${String(bounds.resourceNameCharsMax)} characters, because names of workers are made from it`,
  holds: (name: string): boolean => name.length <= bounds.resourceNameCharsMax,
} as const;

/** Rules that `spec` breaks. */
export function brokenRules(spec: DurableTimerSpec): readonly Problem[] {
  return specRules.filter((rule) => !rule.holds(spec)).map(problemOf);
}

/** Changes from `previous` to `next` that are not possible; empty for an unchanged spec. */
export function immutableChanges(previous: DurableTimerSpec, next: DurableTimerSpec): readonly Problem[] {
  return changeRules.filter((rule) => !rule.allows(previous, next)).map(problemOf);
}

function problemOf(rule: { readonly at: string; readonly field?: string; readonly problem: string }): Problem {
  const field = rule.field === undefined ? rule.at : `${rule.at}.${rule.field}`;
  return { field: `spec.${field}`, problem: rule.problem };
}

function oneAuthAtMost(at: string, auth: (spec: DurableTimerSpec) => DurableTimerSpec["nats"]["auth"]): SpecRule {
  const has = authFields.map((field) => `has(self.${field})`);
  return {
    at,
    cel: `[${has.join(", ")}].filter(given, given).size() <= 1`,
    problem: `must have at most one of ${authFields.join(", ")}`,
    holds: (spec) => authFields.filter((field) => auth(spec)?.[field] !== undefined).length <= 1,
  };
}

/** A rule at the parent, because a rule at the field itself does not run when the field comes or goes. */
function immutable(path: string): ChangeRule {
  const [field = "", ...parents] = path.split(".").reverse();
  const at = parents.reverse();
  return {
    at: at.join("."),
    field,
    cel: `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`,
    problem: "cannot be added, changed or removed later",
    allows: (previous, next) => valueAt(previous, [...at, field]) === valueAt(next, [...at, field]),
  };
}

function textAt(spec: DurableTimerSpec, path: string): string {
  const value = valueAt(spec, path.split("."));
  return typeof value === "string" ? value : "";
}

function valueAt(spec: DurableTimerSpec, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (value as Readonly<Record<string, unknown>> | undefined)?.[key], spec);
}
