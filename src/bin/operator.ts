/** The operator program: elects a leader, and reconciles every DurableTimer while it leads. */
import { hostname } from "node:os";
import { describeFailure, Failure } from "../base/failure.ts";
import { reconcileBackoffMsMax, reconcileBackoffMsMin } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import { backoffMs } from "../concurrency/backoff.ts";
import { kubeApi, type KubeApi } from "../kube/api.ts";
import { KubeCluster, readClusterId } from "../kube/cluster.ts";
import { KubeConnection } from "../kube/connection.ts";
import { holdsLease, leadWhileElected, type LeaseEnd } from "../kube/lease.ts";
import { natsBrokerPort } from "../nats/operator-broker.ts";
import { Controller } from "../operator/controller.ts";
import type { OperatorMetrics } from "../operator/ports.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { systemSha256 } from "../system/sha256.ts";
import { openHealth } from "../telemetry/health.ts";
import { openLog } from "../telemetry/log.ts";
import { exposition, openRegistry, operatorMetrics } from "../telemetry/metrics.ts";
import { hangs, notReady, type Standing } from "./operator-health.ts";
import { readOperatorSettings, type OperatorSettings } from "./operator-settings.ts";
import { stopSignals } from "./signals.ts";

await main();

async function main(): Promise<void> {
  // A container that is started again in its pod is another candidate than the one before.
  const identity = `${hostname()}_${systemRandom.token(8)}`;
  const read = readOperatorSettings(process.env);
  const log = openLog({ level: read.ok ? read.settings.logLevel : "info", fields: { identity } });
  if (!read.ok) {
    log.error({ problems: read.problems }, "Read no usable settings");
    process.exitCode = 2;
    return;
  }
  const connection = connect(read.settings, log);
  if (connection === undefined) {
    process.exitCode = 2;
    return;
  }
  const { stop, hurry } = stopSignals();
  hurry.addEventListener("abort", () => process.exit(1), { once: true });
  process.exit(await run({ settings: read.settings, connection, identity, log, stop }));
}

function connect({ source }: OperatorSettings, log: Log): KubeConnection | undefined {
  try {
    return new KubeConnection(source);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    log.error({ err: error }, "Found no way to the API server");
    return undefined;
  }
}

type Run = { readonly settings: OperatorSettings; readonly connection: KubeConnection; readonly identity: string; readonly log: Log; readonly stop: AbortSignal };

/** Returns the exit code. Nothing but an orderly stop is 0: whatever else ends the operator should show. */
async function run({ settings, connection, identity, log, stop }: Run): Promise<number> {
  const registry = openRegistry();
  const standing: Standing = { state: "starting" };
  const health = await openHealth({ ...settings.health, live: () => hangs(standing), ready: () => notReady(standing), metrics: exposition(registry), log });
  log.info({ healthPort: health.port, watchNamespaces: settings.watchNamespaces, workerImage: settings.workerImage }, "Started the operator");
  try {
    const end = await reconcileWhileElected({ settings, connection, identity, log, stop }, { metrics: operatorMetrics(registry), standing });
    if (end === "lost") return 1;
    await Promise.all([health.close(), connection.close()]);
    log.info({}, "Stopped the operator");
    return 0;
  } catch (error) {
    log.error({ err: error, problem: describeFailure(error) }, "Stopped the operator for a bug");
    return 1;
  }
}

type Parts = { readonly metrics: OperatorMetrics; readonly standing: Standing };

async function reconcileWhileElected({ settings, connection, identity, log, stop }: Run, { metrics, standing }: Parts): Promise<LeaseEnd> {
  const api = kubeApi(connection);
  const tools = { clock: systemClock, random: systemRandom, log };
  const clusterId = settings.clusterId ?? (await clusterIdWhenReadable(api, log, stop));
  if (clusterId === undefined) return "stopped";
  const namespace = settings.lease.namespace ?? connection.namespace ?? "default";
  const lease = { api, identity, namespace, name: settings.lease.name };
  const cluster = new KubeCluster({
    ...tools, api, clusterId,
    confirmLead: async () => await holdsLease(lease),
    sha256: systemSha256,
    namespaces: settings.watchNamespaces,
    defaultImage: settings.workerImage,
    instance: identity,
  });
  const controller = new Controller({ ...tools, cluster, broker: natsBrokerPort(tools), metrics });
  standing.state = "standby";
  metrics.leading(false);
  return await leadWhileElected({ ...tools, ...lease }, stop, async (signal) => {
    Object.assign(standing, { state: "leading", cluster });
    metrics.leading(true);
    await controller.run(signal);
    metrics.leading(false);
  });
}

/** Tries until it is read: without it nothing could be told apart from what belongs to another cluster. */
async function clusterIdWhenReadable(api: KubeApi, log: Log, stop: AbortSignal): Promise<string | undefined> {
  const policy = { minMs: reconcileBackoffMsMin, maxMs: reconcileBackoffMsMax };
  for (let failureCount = 1; !stop.aborted; failureCount += 1) {
    const read = await readClusterId(api);
    if (read.kind === "ok") return read.value;
    log.warn({ code: read.failure.code, err: describeFailure(read.failure) }, "Could not read the uid of kube-system, will try again");
    await systemClock.sleep(backoffMs(policy, failureCount, systemRandom.fraction()), stop);
  }
  return undefined;
}
