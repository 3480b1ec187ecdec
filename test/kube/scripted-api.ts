// An API server whose every answer a test writes down beforehand. For what a real one cannot be made to do on demand: 429,
// 410 in the middle of a list, a connection that goes silent. What it answers in the ordinary case is proved on the real one.

import { Failure } from "../../src/base/failure.ts";
import type { DurationMs } from "../../src/base/units.ts";
import type { ApiRequest, ApiResult, ApiStream, KubeApi } from "../../src/kube/api.ts";
import { failureOfRefusal } from "../../src/kube/classify.ts";

export type ScriptedCall = { readonly kind: "list" | "watch"; readonly query: Readonly<Record<string, string>> };

/** A watch that a test feeds. */
export class ScriptedStream implements ApiStream {
  readonly #pieces: (Uint8Array | undefined)[] = [];
  #reader: { readonly resolve: (piece: Uint8Array | undefined) => void; readonly reject: (error: Error) => void } | undefined;
  isStopped = false;

  read(): Promise<Uint8Array | undefined> {
    if (this.isStopped) return Promise.reject(new Error("stopped"));
    if (this.#pieces.length > 0) return Promise.resolve(this.#pieces.shift());
    return new Promise((resolve, reject) => (this.#reader = { resolve, reject }));
  }

  stop(): void {
    this.isStopped = true;
    this.#reader?.reject(new Error("stopped"));
    this.#reader = undefined;
  }

  send(type: string, object: unknown): void {
    this.#push(new TextEncoder().encode(`${JSON.stringify({ type, object })}\n`));
  }

  end(): void {
    this.#push(undefined);
  }

  break(): void {
    this.#reader?.reject(new Error("connection reset"));
    this.#reader = undefined;
  }

  #push(piece: Uint8Array | undefined): void {
    if (this.#reader === undefined) this.#pieces.push(piece);
    else this.#reader.resolve(piece);
    this.#reader = undefined;
  }
}

export class ScriptedApi implements KubeApi {
  readonly calls: ScriptedCall[] = [];
  readonly streams: ScriptedStream[] = [];
  readonly #answers: ApiResult<unknown>[] = [];

  /** The answer to the next request, list or watch, in order; a watch that has none is opened. */
  answer(...answers: readonly ApiResult<unknown>[]): void {
    this.#answers.push(...answers);
  }

  get lastStream(): ScriptedStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error("expected an open watch");
    return stream;
  }

  async call<T>(request: ApiRequest): Promise<ApiResult<T>> {
    this.calls.push({ kind: "list", query: request.query ?? {} });
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error("expected no list");
    return answer as ApiResult<T>;
  }

  async stream(request: Omit<ApiRequest, "method" | "body" | "contentType">): Promise<ApiResult<ApiStream>> {
    this.calls.push({ kind: "watch", query: request.query ?? {} });
    const answer = this.#answers.shift();
    if (answer !== undefined) return answer as ApiResult<ApiStream>;
    const stream = new ScriptedStream();
    this.streams.push(stream);
    return { kind: "ok", value: stream };
  }
}

export function listOf(resourceVersion: string, objects: readonly unknown[], continuation?: string): ApiResult<unknown> {
  const metadata = { resourceVersion, ...(continuation === undefined ? {} : { continue: continuation }) };
  return { kind: "ok", value: { metadata, items: objects } };
}

export function objectOf(name: string, resourceVersion: string): object {
  return { metadata: { namespace: "n", name, uid: `uid-${name}`, resourceVersion } };
}

export function refusal(httpStatus: number, retryAfterMs?: number): ApiResult<unknown> {
  const failure = failureOfRefusal("GET /x", { httpStatus, body: {} });
  return { kind: "failed", failure, ...(retryAfterMs === undefined ? {} : { retryAfterMs: retryAfterMs as DurationMs }) };
}

export const unreachable: ApiResult<unknown> = { kind: "failed", failure: new Failure("transient", "CLUSTER_UNREACHABLE", "GET /x") };
