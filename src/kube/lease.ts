/**
 * Leader election on a Lease: of all candidates with the same Lease at most one leads.
 *
 * 1. A leader that has not renewed for `renewDeadlineMs` stops leading; others wait `leaseMs`, which is longer. Both are
 *    counted from moments that the other side cannot have seen later, on monotonic clocks.
 * 2. Every write carries the version that was read: of two candidates that find the Lease free, one is refused.
 * 3. `lead` gets a signal that aborts when leadership is lost. `lost` is returned at once then, without waiting for `lead`:
 *    the caller ends the process, which is the only sure way to stop whatever still runs.
 * 4. On a wished stop `lead` ends first, and the Lease is released afterwards, so that the next leader never overlaps.
 */
import { present } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { describeFailure, Failure } from "../base/failure.ts";
import { leaderLeaseMs, leaderRenewDeadlineMs, leaderRetryMs } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import type { Done } from "../operator/ports.ts";
import type { ApiResult, KubeApi } from "./api.ts";
import { heldSpec, isFree, lookAgain, releasedSpec, type Holder, type LeaseObject, type LeaseSight, type LeaseSpec } from "./lease-record.ts";
import { apiResources, collectionPath, objectPath } from "./objects.ts";

export type LeaseOptions = {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly namespace: string;
  readonly name: string;
  /** Unique for each process, also for each start of the same pod. */
  readonly identity: string;
  readonly leaseMs?: DurationMs;
  readonly renewDeadlineMs?: DurationMs;
  readonly retryMs?: DurationMs;
};

/** How an election ended: by the caller's wish, or because somebody else may lead now. */
export type LeaseEnd = "stopped" | "lost";

/** Waits for the Lease, runs `lead` while it is held, and releases it once `lead` has ended. */
export async function leadWhileElected(options: LeaseOptions, signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<LeaseEnd> {
  const election = new Election(options);
  if (!(await election.acquire(signal))) return "stopped";
  const [leading, holding] = [new AbortController(), new AbortController()];
  const stopLeading = (): void => leading.abort();
  signal.addEventListener("abort", stopLeading, { once: true });
  if (signal.aborted) stopLeading();
  const led = lead(leading.signal).finally(() => holding.abort());
  const held = election.hold(holding.signal);
  try {
    if ((await Promise.race([held, led])) === "lost") {
      stopLeading();
      led.catch(() => undefined);
      return "lost";
    }
    await led;
    await held;
    await election.release();
    return "stopped";
  } finally {
    signal.removeEventListener("abort", stopLeading);
  }
}

/** Asks the API server whether that candidate holds the Lease at this moment; for what cannot be taken back. */
export async function holdsLease({ api, namespace, name, identity }: Pick<LeaseOptions, "api" | "namespace" | "name" | "identity">): Promise<Done> {
  const read = await api.call<LeaseObject>({ method: "GET", path: objectPath(apiResources.leases, { namespace, name }) });
  if (read.kind === "failed") return { kind: "failed", failure: read.failure };
  if (read.value.spec?.holderIdentity === identity) return { kind: "done" };
  return { kind: "failed", failure: new Failure("conflict", "CLUSTER_CONFLICT", `act as the leader, which ${read.value.spec?.holderIdentity ?? "nobody"} is by now`) };
}

class Election {
  readonly #options: LeaseOptions;
  readonly #holder: Holder;
  readonly #renewDeadlineMs: DurationMs;
  readonly #retryMs: DurationMs;
  #sight: LeaseSight | undefined;
  /** Before the last successful renewal was sent: the Lease is held for at least `leaseMs` from here. */
  #renewedAtMs: MonotonicMs;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#holder = { identity: options.identity, leaseMs: options.leaseMs ?? leaderLeaseMs };
    this.#renewDeadlineMs = options.renewDeadlineMs ?? leaderRenewDeadlineMs;
    this.#retryMs = options.retryMs ?? leaderRetryMs;
    this.#renewedAtMs = options.clock.monotonicMs();
  }

  /** True once the Lease is held; false when `signal` aborts first. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, log, random } = this.#options;
    while (!signal.aborted) {
      if (await this.#tryAcquire(signal)) {
        log.info({ lease: this.#options.name }, "Became leader");
        return true;
      }
      // Jitter keeps candidates that started together from meeting at each attempt.
      await clock.sleep((this.#retryMs * (1 + 0.2 * random.fraction())) as DurationMs, signal);
    }
    return false;
  }

  /** Renews until `signal` aborts, or until nobody can be sure any more that the Lease is held. */
  async hold(signal: AbortSignal): Promise<LeaseEnd> {
    const { clock, log } = this.#options;
    for (;;) {
      await clock.sleep(this.#retryMs, signal);
      if (signal.aborted) return "stopped";
      const outcome = await this.#renewInTime();
      if (outcome === "taken" || this.#isOverdue()) {
        log.error({ lease: this.#options.name, outcome }, "Lost leadership");
        return "lost";
      }
    }
  }

  /** Best effort: the Lease becomes free by itself otherwise. */
  async release(): Promise<void> {
    const sight = this.#sight;
    if (sight?.lease.spec?.holderIdentity !== this.#holder.identity || this.#isOverdue()) return;
    const released = await this.#write(sight.lease, releasedSpec(sight.lease.spec, this.#options.clock.nowMs()));
    if (released.kind === "ok") this.#options.log.info({ lease: this.#options.name }, "Released leadership");
  }

  async #tryAcquire(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    const sentAtMs = clock.monotonicMs();
    const seen = await this.#read(signal);
    if (seen.kind === "failed" && seen.failure.code === "CLUSTER_MISSING") return this.#took(await this.#create(signal), sentAtMs);
    if (seen.kind === "failed") {
      this.#complain(seen.failure);
      return false;
    }
    this.#sight = lookAgain(this.#sight, seen.value, clock.monotonicMs());
    if (!isFree(this.#sight, clock.monotonicMs())) return false;
    return this.#took(await this.#write(seen.value, heldSpec(seen.value.spec, this.#holder, clock.nowMs()), signal), sentAtMs);
  }

  #took(written: ApiResult<LeaseObject>, sentAtMs: MonotonicMs): boolean {
    if (written.kind === "ok") this.#noteRenewal(written.value, sentAtMs);
    // Losing the race for a free Lease is how elections go.
    else if (written.failure.kind !== "conflict") this.#complain(written.failure);
    return written.kind === "ok";
  }

  /** A renewal that is still under way at the deadline is given up then: its answer would come too late to be of use. */
  async #renewInTime(): Promise<"renewed" | "taken" | "failed"> {
    const { clock } = this.#options;
    const [answered, deadline] = [new AbortController(), new AbortController()];
    const remainingMs = Math.max(0, this.#renewedAtMs + this.#renewDeadlineMs - clock.monotonicMs()) as DurationMs;
    const late = clock.sleep(remainingMs, answered.signal).then(() => "failed" as const);
    try {
      return await Promise.race([this.#renew(deadline.signal), late]);
    } finally {
      answered.abort();
      deadline.abort();
    }
  }

  async #renew(signal: AbortSignal): Promise<"renewed" | "taken" | "failed"> {
    const { clock } = this.#options;
    const { lease } = present(this.#sight, "a lease that is held was seen");
    const sentAtMs = clock.monotonicMs();
    const written = await this.#write(lease, heldSpec(lease.spec, this.#holder, clock.nowMs()), signal);
    if (written.kind === "ok") {
      this.#noteRenewal(written.value, sentAtMs);
      return "renewed";
    }
    if (written.failure.kind === "conflict") return await this.#lookAfterConflict(signal);
    this.#complain(written.failure);
    return "failed";
  }

  /** A conflict may be our own write whose answer was lost, or somebody who edited the Lease without taking it. */
  async #lookAfterConflict(signal: AbortSignal): Promise<"taken" | "failed"> {
    const seen = await this.#read(signal);
    if (seen.kind === "failed") return seen.failure.code === "CLUSTER_MISSING" ? "taken" : "failed";
    if (seen.value.spec?.holderIdentity !== this.#holder.identity) return "taken";
    this.#sight = { lease: seen.value, changedAtMs: this.#options.clock.monotonicMs() };
    return "failed";
  }

  async #read(signal: AbortSignal): Promise<ApiResult<LeaseObject>> {
    const { api, namespace, name } = this.#options;
    return await api.call<LeaseObject>({ method: "GET", path: objectPath(apiResources.leases, { namespace, name }), signal });
  }

  async #create(signal: AbortSignal): Promise<ApiResult<LeaseObject>> {
    const { api, clock, namespace, name } = this.#options;
    const body = { apiVersion, kind, metadata: { namespace, name }, spec: heldSpec(undefined, this.#holder, clock.nowMs()) };
    return await api.call<LeaseObject>({ method: "POST", path: collectionPath(apiResources.leases, namespace), body, signal });
  }

  async #write(lease: LeaseObject, spec: LeaseSpec, signal?: AbortSignal): Promise<ApiResult<LeaseObject>> {
    const { api, namespace, name } = this.#options;
    const body = { ...lease, apiVersion, kind, spec };
    return await api.call<LeaseObject>({ method: "PUT", path: objectPath(apiResources.leases, { namespace, name }), body, ...(signal === undefined ? {} : { signal }) });
  }

  #noteRenewal(lease: LeaseObject, sentAtMs: MonotonicMs): void {
    this.#sight = { lease, changedAtMs: this.#options.clock.monotonicMs() };
    this.#renewedAtMs = sentAtMs;
  }

  #isOverdue(): boolean {
    return this.#options.clock.monotonicMs() - this.#renewedAtMs >= this.#renewDeadlineMs;
  }

  #complain(failure: Failure): void {
    if (failure.code === "STOPPED") return;
    this.#options.log.warn({ lease: this.#options.name, code: failure.code, err: describeFailure(failure) }, "Could not use the lease");
  }
}

const apiVersion = "coordination.k8s.io/v1";
const kind = "Lease";
