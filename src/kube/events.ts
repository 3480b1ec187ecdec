/**
 * Events about resources (events.k8s.io/v1), as `kubectl describe` shows them.
 *
 * 1. A repeat of the same words within `eventSeriesMs` is counted on the event that exists, not written as a new one.
 * 2. At most `eventsPerResourceMax` events per resource are written in that time, and at most `eventsRememberedMax` kinds of
 *    events are remembered (I13). What is beyond is dropped: an event is a courtesy, and the status tells the same.
 * 3. A failure to write one is logged and forgotten.
 */
import { cutToBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { describeFailure } from "../base/failure.ts";
import { eventNoteBytesMax, eventSeriesMs, eventsPerResourceMax, eventsRememberedMax } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { MonotonicMs } from "../base/units.ts";
import type { ObservedResource } from "../operator/plan/observed.ts";
import type { ResourceEvent } from "../operator/ports.ts";
import { apiGroup, apiVersion, kind } from "../resource/names.ts";
import type { ApiResult, KubeApi } from "./api.ts";
import { microTime } from "./lease-record.ts";
import { apiResources, collectionPath, fieldManager, objectPath } from "./objects.ts";

export type EventsOptions = {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Name of this process, such as its pod's. */
  readonly instance: string;
};

type About = Pick<ObservedResource, "key" | "uid">;

/** An event that was written: where it is, and how often it has been seen. */
type Series = { readonly name: string; count: number; lastAtMs: MonotonicMs };

type Budget = { readonly sinceMs: MonotonicMs; count: number };

/** Writes the events of all resources; keeps what is needed to count repeats. */
export class EventWriter {
  readonly #options: EventsOptions;
  readonly #series = new Map<string, Series>();
  readonly #budgets = new Map<string, Budget>();

  constructor(options: EventsOptions) {
    this.#options = options;
  }

  /** Writes or counts one event. Never rejects. */
  async emit(about: About, event: ResourceEvent): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#mayWrite(about.uid, nowMs)) return;
    const identity = JSON.stringify([about.uid, event.severity, event.reason, event.message]);
    const series = this.#series.get(identity);
    const isRepeat = series !== undefined && nowMs - series.lastAtMs < eventSeriesMs;
    const isCounted = isRepeat && (await this.#count(about, series, nowMs));
    if (!isCounted) await this.#create(about, event, identity);
  }

  /** False when the event is no longer there: the API server keeps events for an hour. */
  async #count(about: About, series: Series, nowMs: MonotonicMs): Promise<boolean> {
    const { api, clock } = this.#options;
    series.count += 1;
    series.lastAtMs = nowMs;
    const body = { series: { count: series.count, lastObservedTime: microTime(clock.nowMs()) } };
    const path = objectPath(apiResources.events, { namespace: about.key.namespace, name: series.name });
    const counted = await api.call({ method: "PATCH", path, query: { fieldManager }, body, contentType: "application/merge-patch+json" });
    if (counted.kind === "failed" && counted.failure.code === "CLUSTER_MISSING") return false;
    this.#complain(counted);
    return true;
  }

  async #create(about: About, event: ResourceEvent, identity: string): Promise<void> {
    const { api, clock, random, instance } = this.#options;
    const { namespace, name } = about.key;
    const eventName = `${name}.${random.token(nameTokenChars)}`;
    const body = {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { namespace, name: eventName },
      eventTime: microTime(clock.nowMs()),
      type: event.severity,
      reason: event.reason,
      note: cutToBytes(event.message, eventNoteBytesMax),
      action: "Reconcile",
      reportingController: `${apiGroup}/operator`,
      reportingInstance: cutToBytes(instance, instanceBytesMax),
      regarding: { apiVersion, kind, namespace, name, uid: about.uid },
    };
    const created = await api.call({ method: "POST", path: collectionPath(apiResources.events, namespace), query: { fieldManager }, body });
    this.#complain(created);
    if (created.kind === "ok") this.#remember(identity, { name: eventName, count: 1, lastAtMs: clock.monotonicMs() });
  }

  #mayWrite(uid: string, nowMs: MonotonicMs): boolean {
    const known = this.#budgets.get(uid);
    const budget = known === undefined || nowMs - known.sinceMs >= eventSeriesMs ? { sinceMs: nowMs, count: 0 } : known;
    if (budget.count >= eventsPerResourceMax) return false;
    budget.count += 1;
    putLast(this.#budgets, uid, budget);
    return true;
  }

  #remember(identity: string, series: Series): void {
    putLast(this.#series, identity, series);
  }

  #complain(result: ApiResult<unknown>): void {
    if (result.kind === "ok") return;
    this.#options.log.debug({ code: result.failure.code, err: describeFailure(result.failure) }, "Dropped an event");
  }
}

/** Puts an entry at the end and drops the one that was put longest ago when there are too many. */
function putLast<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= eventsRememberedMax) return;
    map.delete(oldest);
  }
}

const nameTokenChars = 12;
/** Bound of the API. */
const instanceBytesMax = 128;
