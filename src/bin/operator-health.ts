// What the operator's probes say.

import { watchStalledMsMax } from "../base/limits.ts";
import type { KubeCluster } from "../kube/cluster.ts";

/** What the operator does at the moment. */
export type Standing = { state: "starting" | "standby" | "leading"; cluster?: Pick<KubeCluster, "isSynced" | "silentForMs"> };

/** A broken connection is no reason to restart; a loop that no longer goes round is. */
export function hangs({ cluster }: Standing): readonly string[] {
  return cluster !== undefined && cluster.silentForMs > watchStalledMsMax ? ["a watch of the API server hangs"] : [];
}

/** One that stands by is ready: it is what a rollout waits for before it stops the leader. */
export function notReady({ state, cluster }: Standing): readonly string[] {
  if (state === "starting") return ["the cluster's id is not known yet"];
  return state === "leading" && cluster?.isSynced !== true ? ["not everything that is watched has been listed"] : [];
}
