/** Inputs of the tests of this room: a spec with overrides, and the stamp that they use. */
import type { DurableTimerSpec } from "../../src/resource/durable-timer.ts";
import { parseSpec } from "../../src/resource/validate.ts";
import { desiredTopology, type DesiredInput } from "../../src/topology/desired.ts";
import type { ConsumerSpec, StreamSpec } from "../../src/topology/layout.ts";
import { patched, type Patch } from "../resource/examples.ts";

export const owner = { id: "cluster-1/payments/orders", uid: "0d3e" };

export const incarnations: DesiredInput["incarnations"] = {
  state: "i-state", commands: "i-commands", feedback: "i-feedback", snapshots: "i-snapshots", terminals: "i-terminals", schedules: "i-schedules", resumes: "i-resumes",
};

/** The smallest valid spec with a merge patch over it. */
export function specOf(patch: Patch): DurableTimerSpec {
  const parsed = parseSpec(patched(patch));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

/** Sizes that a test machine has room for. */
export const smallStreams = Object.fromEntries(["state", "commands", "feedback", "snapshots", "terminals", "resumes"].map((role) => [role, { maxBytes: "4Mi" }]));

export function topologyOf(patch: Patch): ReturnType<typeof desiredTopology> {
  return desiredTopology({ spec: specOf(patch), owner, incarnations });
}

export function streamOf(role: StreamSpec["role"], patch: Patch = {}): StreamSpec {
  const found = topologyOf(patch).streams.find((stream) => stream.role === role);
  if (found === undefined) throw new Error(`no stream ${role}`);
  return found;
}

export function consumerOf(role: ConsumerSpec["role"], patch: Patch = {}): ConsumerSpec {
  const found = topologyOf(patch).consumers.find((consumer) => consumer.role === role);
  if (found === undefined) throw new Error(`no consumer ${role}`);
  return found;
}
