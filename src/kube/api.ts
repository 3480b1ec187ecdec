/**
 * The API server as this room uses it: one call per request, plain JSON in and out, and streams of bytes for watches.
 *
 * From the client package come credentials and transport only. Its generated methods turn JSON into classes and back (losing
 * unknown fields, and mixing dates with strings), choose JSON Patch silently, and hide the status in an exception's text.
 *
 * 1. Nothing here throws for what the server answers or for a broken connection.
 * 2. A server that says how long to stay away (429, 503) is asked again after that, within the time limit of the call.
 * 3. Every call ends within its time limit, and so does the opening of a stream; an open one ends when its reader stops it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { HttpMethod, IsomorphicFetchHttpLibrary, RequestContext, type ResponseContext } from "@kubernetes/client-node";
import { Failure } from "../base/failure.ts";
import { clusterCallTimeoutMs } from "../base/limits.ts";
import type { DurationMs } from "../base/units.ts";
import { failureOfRefusal, failureOfSilence, retryAfterMs, type ApiRefusal, type ApiStatus } from "./classify.ts";
import type { KubeConnection } from "./connection.ts";

export type ApiRequest = {
  readonly method: keyof typeof HttpMethod;
  /** From the root, without a query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** JSON unless it says otherwise; required for a patch, which has no sensible default. */
  readonly contentType?: "application/merge-patch+json" | "application/apply-patch+yaml";
  readonly signal?: AbortSignal;
};

/** The answer, or why there is none; a server that is overloaded may say how long to stay away. */
export type ApiResult<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "failed"; readonly failure: Failure; readonly retryAfterMs?: DurationMs };

/** A response that goes on until the server ends it, or until `stop`. */
export type ApiStream = {
  /** The next bytes; undefined at the end. Rejects when the connection breaks, or after `stop`. */
  read(): Promise<Uint8Array | undefined>;
  /** Ends the stream and its connection. Idempotent. */
  stop(): void;
};

/** An interface, so that the reflector's reaction to every answer can be tested without a server that gives it. */
export interface KubeApi {
  call<T>(request: ApiRequest): Promise<ApiResult<T>>;
  /** Opens a GET whose answer is read piece by piece. */
  stream(request: Omit<ApiRequest, "method" | "body" | "contentType">): Promise<ApiResult<ApiStream>>;
}

/** The real API server behind `connection`. */
export function kubeApi(connection: KubeConnection, timeoutMs: DurationMs = clusterCallTimeoutMs): KubeApi {
  return {
    call: async <T>(request: ApiRequest) => await call<T>({ connection, timeoutMs }, request),
    stream: async (request) => await openStream({ connection, timeoutMs }, { ...request, method: "GET" }),
  };
}

type Server = { readonly connection: KubeConnection; readonly timeoutMs: DurationMs };

async function call<T>({ connection, timeoutMs }: Server, request: ApiRequest): Promise<ApiResult<T>> {
  const signal = anySignal([AbortSignal.timeout(timeoutMs), request.signal]);
  const endsAtMs = performance.now() + timeoutMs;
  for (;;) {
    const result = await callOnce<T>(connection, request, signal);
    const waitMs = result.kind === "failed" && isRepeatable(request, result.failure) ? result.retryAfterMs : undefined;
    if (waitMs === undefined || performance.now() + waitMs >= endsAtMs) return result;
    await sleep(Math.max(waitMs, retryMsMin), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return result;
  }
}

/** A request that met an overloaded server was not looked at, whatever it asked for; a read is harmless anyway. */
function isRepeatable({ method }: ApiRequest, { code }: Failure): boolean {
  return code === "CLUSTER_OVERLOADED" || method === "GET";
}

async function callOnce<T>(connection: KubeConnection, request: ApiRequest, signal: AbortSignal): Promise<ApiResult<T>> {
  try {
    const response = await send(connection, request, signal);
    const text = await response.body.text();
    if (response.httpStatusCode < 300) return { kind: "ok", value: JSON.parse(text) as T };
    return refused(request, { httpStatus: response.httpStatusCode, body: statusIn(text), ...retryAfterOf(response) });
  } catch (error) {
    return unanswered(request, error);
  }
}

async function openStream({ connection, timeoutMs }: Server, request: ApiRequest): Promise<ApiResult<ApiStream>> {
  const stopped = new AbortController();
  const opening = new AbortController();
  const timer = setTimeout(() => opening.abort(new Error("no answer in time")), timeoutMs);
  try {
    const response = await send(connection, request, anySignal([opening.signal, stopped.signal, request.signal]));
    if (response.httpStatusCode < 300) return { kind: "ok", value: streamOf(response, stopped) };
    const body = statusIn(await response.body.text());
    return refused(request, { httpStatus: response.httpStatusCode, body, ...retryAfterOf(response) });
  } catch (error) {
    return unanswered(request, error);
  } finally {
    clearTimeout(timer);
  }
}

async function send(connection: KubeConnection, request: ApiRequest, signal: AbortSignal): Promise<ResponseContext> {
  const context = new RequestContext(`${connection.serverUrl}${request.path}`, HttpMethod[request.method]);
  for (const [name, value] of Object.entries(request.query ?? {})) context.setQueryParam(name, value);
  await connection.authorize(context);
  context.setHeaderParam("accept", "application/json");
  context.setHeaderParam("user-agent", userAgent);
  context.setSignal(signal);
  if (request.body !== undefined) {
    context.setHeaderParam("content-type", request.contentType ?? "application/json");
    context.setBody(JSON.stringify(request.body));
  }
  return await transport.send(context).toPromise();
}

function streamOf(response: ResponseContext, stopped: AbortController): ApiStream {
  const reader = response.body.stream()?.getReader();
  return {
    read: async () => (await reader?.read())?.value,
    stop: () => stopped.abort(),
  };
}

function refused(request: ApiRequest, refusal: ApiRefusal): ApiResult<never> {
  const waitMs = retryAfterMs(refusal);
  const failure = failureOfRefusal(attemptOf(request), refusal);
  return { kind: "failed", failure, ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) };
}

function unanswered(request: ApiRequest, error: unknown): ApiResult<never> {
  if (request.signal?.aborted === true) return { kind: "failed", failure: new Failure("transient", "STOPPED", attemptOf(request)) };
  return { kind: "failed", failure: failureOfSilence(attemptOf(request), error) };
}

function attemptOf(request: ApiRequest): string {
  return `${request.method} ${request.path}`;
}

function retryAfterOf(response: ResponseContext): { readonly retryAfter?: string } {
  const retryAfter = response.headers["retry-after"];
  return retryAfter === undefined ? {} : { retryAfter };
}

/** The Status object of a refusal; proxies in between answer with other texts. */
function statusIn(text: string): ApiStatus {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return { message: text.slice(0, foreignTextCharsMax) };
  }
}

function anySignal(signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

const transport = new IsomorphicFetchHttpLibrary();
const userAgent = "durable-timer-operator";
const foreignTextCharsMax = 256;
/** A server that asks to stay away for no time at all would else be asked as fast as it answers. */
const retryMsMin = 100;
