// One Lease behind compare-and-set, with answers that can be held back or refused: for the timing of an election, which
// needs a clock that a test steps. That the real API server compares and sets is proved in lease.api.test.ts.

import { Failure } from "../../src/base/failure.ts";
import type { ApiRequest, ApiResult, ApiStream, KubeApi } from "../../src/kube/api.ts";
import type { LeaseObject } from "../../src/kube/lease-record.ts";

export class LeaseServer {
  lease: LeaseObject | undefined;
  writeCount = 0;
  #version = 0;

  /** The server as one candidate reaches it; `path` decides what becomes of its requests. */
  reachedBy(path: { state: "up" | "down" | "hanging" }): KubeApi {
    return {
      call: async <T>(request: ApiRequest): Promise<ApiResult<T>> => {
        if (path.state === "hanging") await new Promise<void>((resolve) => request.signal?.addEventListener("abort", () => resolve(), { once: true }));
        if (path.state !== "up") return failed("transient", "CLUSTER_UNREACHABLE");
        return this.#answer(request) as ApiResult<T>;
      },
      stream: async (): Promise<ApiResult<ApiStream>> => failed("invalid", "CLUSTER_INVALID"),
    };
  }

  #answer(request: ApiRequest): ApiResult<LeaseObject> {
    if (request.method === "GET") return this.lease === undefined ? failed("conflict", "CLUSTER_MISSING") : { kind: "ok", value: this.lease };
    const sent = request.body as LeaseObject;
    if (request.method === "POST") return this.lease === undefined ? this.#store(sent, "1") : failed("conflict", "CLUSTER_EXISTS");
    if (this.lease === undefined) return failed("conflict", "CLUSTER_MISSING");
    const isLast = sent.metadata.resourceVersion === this.lease.metadata.resourceVersion;
    return isLast ? this.#store(sent, this.lease.metadata.uid) : failed("conflict", "CLUSTER_CONFLICT");
  }

  #store(sent: LeaseObject, uid: string): ApiResult<LeaseObject> {
    this.#version += 1;
    this.writeCount += 1;
    this.lease = { ...sent, metadata: { ...sent.metadata, uid, resourceVersion: String(this.#version) } };
    return { kind: "ok", value: this.lease };
  }
}

function failed(kind: "transient" | "conflict" | "invalid", code: "CLUSTER_UNREACHABLE" | "CLUSTER_MISSING" | "CLUSTER_EXISTS" | "CLUSTER_CONFLICT" | "CLUSTER_INVALID"): ApiResult<never> {
  return { kind: "failed", failure: new Failure(kind, code, "lease") };
}
