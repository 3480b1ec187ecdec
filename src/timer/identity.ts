/**
 * Who a timer is. A timer is one occurrence of one node of one execution of one released flow; its ref is a hash of
 * that lineage, so every sender, worker and retry arrives at the same name without asking anyone.
 *
 * The edges belong to the lineage but not to the identity: the same node cannot wait twice under different edges.
 */
import { base32, lengthPrefixed } from "../base/bytes.ts";
import { flowTokenCharsMax } from "../base/limits.ts";
import type { Sha256 } from "../base/sha256.ts";

/** Where a timer stands in its flow. Ids are opaque text chosen by the flow's owner. */
export type Lineage = {
  readonly flow: { readonly id: string; readonly version: string };
  /** Root execution: the run of the flow that this timer belongs to. */
  readonly execution: string;
  readonly node: string;
  readonly edges: { readonly start: string; readonly elapsed: string; readonly retry?: string };
};

/** How keys and subjects name a timer: `<flow>.<ref>`. */
export type TimerKey = {
  /** The flow id when it is plain, else `~h` and a hash: one subject token either way. */
  readonly flow: string;
  /** 32 characters of lower-case base32. */
  readonly ref: string;
};

/** The key of the timer of this lineage. */
export function timerKey(lineage: Lineage, sha256: Sha256): TimerKey {
  const identity = [lineage.flow.id, lineage.flow.version, lineage.execution, lineage.node];
  return { flow: flowToken(lineage.flow.id, sha256), ref: digest(identity, sha256) };
}

/** The subject token of a flow: itself when plain, else a hash that no plain flow id can equal. */
export function flowToken(flowId: string, sha256: Sha256): string {
  return plainFlowId.test(flowId) ? flowId : `~h${digest([flowId], sha256)}`;
}

/** True when two lineages are the same in every part, edges included. */
export function sameLineage(a: Lineage, b: Lineage): boolean {
  return lineageParts(a).every((part, index) => part === lineageParts(b)[index]);
}

/** Every part of a lineage in the fixed order in which hashes take them; an absent retry edge is empty. */
export function lineageParts(lineage: Lineage): readonly string[] {
  const { flow, execution, node, edges } = lineage;
  return [flow.id, flow.version, execution, node, edges.start, edges.elapsed, edges.retry ?? ""];
}

/** First 160 bits of SHA-256 over the length-prefixed parts, in base32. */
function digest(parts: readonly string[], sha256: Sha256): string {
  return base32(sha256(lengthPrefixed(parts)).subarray(0, 20));
}

const plainFlowId = new RegExp(`^[A-Za-z0-9_-]{1,${String(flowTokenCharsMax)}}$`);
