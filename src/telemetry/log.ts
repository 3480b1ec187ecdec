/**
 * JSON lines on standard output, one per event. Credentials and payloads are removed by the names under which they
 * could appear, whoever logs them by mistake; errors are shown with the whole chain of their causes.
 */
import { pino, type DestinationStream, type Logger } from "pino";
import { Failure } from "../base/failure.ts";
import type { Log, LogFields } from "../base/log.ts";

/** From the chattiest to the quietest. */
export const logLevels = ["debug", "info", "warn", "error"] as const;

/** The least that is written. */
export type LogLevel = (typeof logLevels)[number];

/** What a log is made of. */
export type LogOptions = {
  readonly level: LogLevel;
  /** Appear on every line, such as the component and its version. */
  readonly fields: LogFields;
  /** Standard output unless given. */
  readonly destination?: DestinationStream;
};

/** A log that writes JSON lines. Writes at once: what was logged before a crash is there after it. */
export function openLog({ level, fields, destination }: LogOptions): Log {
  const options = {
    level,
    base: fields,
    messageKey: "message",
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describe, failure: describe, cause: describe, servers: withoutUserInfo },
    redact: { paths: secretPaths, censor: "[redacted]" },
  };
  return adapt(destination === undefined ? pino(options) : pino(options, destination));
}

function adapt(logger: Logger): Log {
  return {
    debug: (fields, message) => { logger.debug(fields, message); },
    info: (fields, message) => { logger.info(fields, message); },
    warn: (fields, message) => { logger.warn(fields, message); },
    error: (fields, message) => { logger.error(fields, message); },
    child: (fields) => adapt(logger.child(fields)),
  };
}

type Described = { readonly message: string; readonly name?: string; readonly code?: string; readonly kind?: string; readonly stack?: string; readonly causes?: readonly Described[] };

/** An error and its causes, outermost first. A Failure was expected, so its stack says nothing. */
function describe(error: unknown): Described {
  const chain: Described[] = [];
  for (let at: unknown = error; at !== undefined && chain.length < causeCountMax; at = at instanceof Error ? at.cause : undefined) {
    chain.push(describeOne(at));
  }
  const [outermost = { message: "nothing" }, ...causes] = chain;
  return causes.length === 0 ? outermost : { ...outermost, causes };
}

function describeOne(error: unknown): Described {
  if (error instanceof Failure) return { message: error.message, kind: error.kind, code: error.code };
  if (!(error instanceof Error)) return { message: String(error) };
  const code = (error as { readonly code?: unknown }).code;
  return {
    message: error.message, name: error.name, ...(typeof code === "string" ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
  };
}

/** `nats://user:password@host` is a usual way to write a server down. */
function withoutUserInfo(servers: unknown): unknown {
  if (Array.isArray(servers)) return servers.map(withoutUserInfo);
  return typeof servers === "string" ? servers.replace(/^([a-z]+:\/\/)?[^/@]*@/i, "$1") : servers;
}

const causeCountMax = 8;

const secretNames = ["password", "token", "seed", "secret", "credentials", "creds", "jwt", "nkey", "auth", "authorization", "body", "payload"];
/** On a line itself, and one and two levels below it. */
const secretPaths = ["tls.key", "*.tls.key", ...secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])];
