/**
 * The configuration that travels from the operator to a worker as one environment variable, so that a pod template and the
 * configuration in it cannot diverge.
 *
 * W1 A worker ignores keys that it does not know, and new keys are optional: workers of the previous and the next release
 *    run side by side during a rollout.
 * W2 It holds no secret, only paths of mounted files.
 * W3 The same spec gives the same text: a rollout happens only when something changed.
 */
import { z } from "zod";
import { unreachable } from "../base/assert.ts";
import { feedbackTimeoutMsDefault } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";
import { resourceBounds as bounds } from "./bounds.ts";
import type { DeepReadonly, DurableTimerSpec } from "./durable-timer.ts";
import { healthPort } from "./names.ts";
import { problemsOf, type Problem } from "./problems.ts";
import { connectionSecrets, type AuthSource } from "./secrets.ts";

/** Milliseconds, already branded. */
const durationMs = z.int().min(0) as unknown as z.ZodType<DurationMs, DurationMs>;
const path = z.string().min(1).max(4_096);
const optional = z.exactOptional;

const auth = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("credentials"), file: path }),
  z.object({ kind: z.literal("nkey"), seedFile: path }),
  z.object({ kind: z.literal("user"), userFile: path, passwordFile: path }),
  z.object({ kind: z.literal("token"), file: path }),
]);

/** The shape of the configuration; unknown keys are left out on reading (W1). */
export const workerConfigSchema = z.object({
  nats: z.object({
    servers: z.array(z.string().min(1)).min(1).max(bounds.serversMax),
    domain: optional(z.string().min(1)),
    auth: optional(auth),
    tls: optional(z.object({ caFile: optional(path), certFile: optional(path), keyFile: optional(path), handshakeFirst: optional(z.boolean()) })),
  }),
  limits: z.object({ payloadBytesMax: z.int().min(1), delayMsMax: durationMs, retriesMax: z.int().min(0), replyPrefix: z.string().min(1) }),
  admission: z.object({ closePercent: z.int().min(1).max(100), reopenPercent: z.int().min(0).max(100) }),
  feedback: optional(z.object({ timeoutMs: durationMs, onTimeout: z.enum(["none", "fail", "resume_again"]) })),
  sweep: z.object({ intervalMs: durationMs, graceMs: durationMs }),
  retention: optional(z.object({ archiveAgeMs: durationMs, dedupeMs: durationMs })),
  lookahead: z.int().min(1),
  shutdownGraceMs: durationMs,
  healthPort: z.int().min(0).max(65_535),
});

/** What a worker is told: its parts are those of the worker's settings and of the broker's options. */
export type WorkerConfig = DeepReadonly<z.output<typeof workerConfigSchema>>;

/** Folders in which a worker finds the files of its Secrets, each file named by its key. */
export type SecretFolders = { readonly auth: string; readonly ca: string; readonly clientCert: string };

/** The configuration of this resource's workers. */
export function workerConfigOf(spec: DurableTimerSpec, folders: SecretFolders): WorkerConfig {
  const { limits, sweep, workers } = spec;
  return {
    nats: natsConfigOf(spec, folders),
    limits: {
      payloadBytesMax: limits.payloadBytesMax,
      delayMsMax: seconds(limits.delaySecondsMax),
      retriesMax: limits.retriesMax,
      replyPrefix: spec.nats.replyPrefix,
    },
    admission: { closePercent: spec.admission.closePercent, reopenPercent: spec.admission.reopenPercent },
    ...feedbackOf(spec),
    sweep: { intervalMs: seconds(sweep.intervalSeconds), graceMs: seconds(sweep.graceSeconds) },
    ...retentionOf(spec),
    // As the spec has it: a bound of ours in it would roll every worker whenever a release changes the bound.
    lookahead: workers.maxAckPending,
    shutdownGraceMs: seconds(workers.terminationGracePeriodSeconds - exitSeconds),
    healthPort,
  };
}

/** The text of the environment variable. */
export function workerConfigText(config: WorkerConfig): string {
  return JSON.stringify(config);
}

/** A configuration, or everything that is wrong with it. */
export type ReadWorkerConfig =
  | { readonly ok: true; readonly config: WorkerConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Reads the text of the environment variable. Never throws. */
export function readWorkerConfig(text: string): ReadWorkerConfig {
  const json = parseJson(text);
  if (json === undefined) return { ok: false, problems: [{ field: "", problem: "must be a JSON object" }] };
  const read = workerConfigSchema.safeParse(json, { reportInput: true });
  return read.success ? { ok: true, config: read.data } : { ok: false, problems: problemsOf(read.error, []) };
}

/** Nothing for the default, which every worker knows: its arrival in a release must not roll workers that do not use it. */
function feedbackOf({ feedback }: DurableTimerSpec): Pick<WorkerConfig, "feedback"> {
  const timeoutMs = seconds(feedback.timeoutSeconds);
  if (feedback.onTimeout === "None" && timeoutMs === feedbackTimeoutMsDefault) return {};
  return { feedback: { timeoutMs, onTimeout: policies[feedback.onTimeout] } };
}

/** Nothing while everything is kept, for the same reason. */
function retentionOf({ retention: { archive } }: DurableTimerSpec): Pick<WorkerConfig, "retention"> {
  const { policy, afterSeconds, dedupeSeconds } = archive;
  if (policy === "Keep" || afterSeconds === undefined || dedupeSeconds === undefined) return {};
  return { retention: { archiveAgeMs: seconds(afterSeconds), dedupeMs: seconds(dedupeSeconds) } };
}

const policies = { None: "none", Fail: "fail", ResumeAgain: "resume_again" } as const;

function natsConfigOf(spec: DurableTimerSpec, folders: SecretFolders): WorkerConfig["nats"] {
  const { servers, jetStreamDomain, tls } = spec.nats;
  const secrets = connectionSecrets(spec, "workers");
  return {
    servers,
    ...(jetStreamDomain === undefined ? {} : { domain: jetStreamDomain }),
    ...(secrets.auth === undefined ? {} : { auth: authFiles(secrets.auth, folders.auth) }),
    ...(tls === undefined ? {} : { tls: tlsFiles(spec, folders) }),
  };
}

function tlsFiles(spec: DurableTimerSpec, folders: SecretFolders): NonNullable<WorkerConfig["nats"]["tls"]> {
  const { ca, clientCert } = connectionSecrets(spec, "workers");
  return {
    ...(ca === undefined ? {} : { caFile: `${folders.ca}/${ca.key}` }),
    ...(clientCert === undefined
      ? {}
      : { certFile: `${folders.clientCert}/${clientCert.certKey}`, keyFile: `${folders.clientCert}/${clientCert.keyKey}` }),
    ...(spec.nats.tls?.handshakeFirst === undefined ? {} : { handshakeFirst: spec.nats.tls.handshakeFirst }),
  };
}

function authFiles(source: AuthSource, folder: string): NonNullable<WorkerConfig["nats"]["auth"]> {
  switch (source.kind) {
    case "credentials":
    case "token":
      return { kind: source.kind, file: `${folder}/${source.key}` };
    case "nkey":
      return { kind: "nkey", seedFile: `${folder}/${source.key}` };
    case "user":
      return { kind: "user", userFile: `${folder}/${source.userKey}`, passwordFile: `${folder}/${source.passwordKey}` };
    default:
      return unreachable(source);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function seconds(value: number): DurationMs {
  return (value * 1_000) as DurationMs;
}

/** Left of the termination grace period for closing connections and exiting. */
const exitSeconds = 5;
