/**
 * Follows all objects of one kind: lists them, watches from there, and calls `onChange` with the key of whatever changed.
 *
 * The informer of the client package stops for good at the first broken connection and swallows what its callbacks throw,
 * so this one is our own.
 *
 * 1. Every end of a watch leads to another one, or to a new list; nothing but `signal` ends the loop.
 * 2. What changed or vanished while no watch ran is reported after the next list.
 * 3. An object is remembered as what `keep` makes of it, never whole, so that memory does not grow with their sizes.
 * 4. `onChange` only takes note of keys (it fills a queue): what it throws is a bug and ends the loop.
 * 5. A connection that is silent is dead: bookmarks come about every minute, also when nothing changes.
 */
import type { Clock } from "../base/clock.ts";
import { describeFailure, Failure } from "../base/failure.ts";
import {
  listPageSize,
  reflectorBackoffMsMax,
  reflectorBackoffMsMin,
  relistIntervalMs,
  watchEventBytesMax,
  watchHealthyMsMin,
  watchMsMax,
  watchMsMin,
  watchResumesMax,
  watchSilenceMsMax,
} from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { DurationMs, MonotonicMs } from "../base/units.ts";
import { backoffMs } from "../concurrency/backoff.ts";
import type { ApiResult, ApiStream, KubeApi } from "./api.ts";
import type { KubeObject, ObjectList, ObjectMeta } from "./objects.ts";
import { WatchEventReader, type WatchEvent } from "./watch-events.ts";

export type ReflectorOptions<Kept> = {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Path of the collection. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly keep: (object: KubeObject) => Kept;
  /** `before` is what was kept of it, if it was known; `now` is undefined once it is gone. */
  readonly onChange: (change: { readonly key: ObjectKey; readonly before?: Kept; readonly now?: Kept }) => void;
};

/** Where an object is; the namespace is empty for objects of the cluster. */
export type ObjectKey = Required<Pick<ObjectMeta, "namespace" | "name">>;

type Entry<Kept> = { readonly key: ObjectKey; readonly resourceVersion: string; readonly kept: Kept };

/** How a list or a watch ended. */
type Ending =
  | { readonly kind: "fine" }
  /** The version to go on from is too old. */
  | { readonly kind: "expired" }
  | { readonly kind: "failed"; readonly failure: Failure; readonly retryAfterMs?: DurationMs };

/** Follows one collection; `Kept` is what is remembered of each object. */
export class Reflector<Kept> {
  readonly #options: ReflectorOptions<Kept>;
  readonly #entries = new Map<string, Entry<Kept>>();
  /** Where the next watch begins; undefined asks for a list. */
  #resourceVersion: string | undefined;
  #listedAtMs: MonotonicMs | undefined;
  /** Failures since a watch last stood for a while; a list alone proves little. */
  #failureCount = 0;
  #progressAtMs: MonotonicMs;

  constructor(options: ReflectorOptions<Kept>) {
    this.#options = options;
    this.#progressAtMs = options.clock.monotonicMs();
  }

  /** A list has succeeded at least once. */
  get isSynced(): boolean {
    return this.#listedAtMs !== undefined;
  }

  /**
   * When this loop last did anything: got an answer, a piece of a watch, or a refusal. It stands still only when the loop
   * hangs, which a restart would mend; an API server that is away does not make it stand still.
   */
  get progressAtMs(): MonotonicMs {
    return this.#progressAtMs;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Follows the objects until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const ending = await this.#listOrWatch(signal);
      this.#noteProgress();
      if (ending.kind !== "fine" && !signal.aborted) await this.#recover(ending, signal);
      if (this.#isListDue()) this.#resourceVersion = undefined;
    }
  }

  async #listOrWatch(signal: AbortSignal): Promise<Ending> {
    return this.#resourceVersion === undefined ? await this.#list(signal) : await this.#watch(this.#resourceVersion, signal);
  }

  /** An expired version is worth a new list at once, unless that is all there has been lately. */
  async #recover(ending: Exclude<Ending, { readonly kind: "fine" }>, signal: AbortSignal): Promise<void> {
    this.#failureCount += 1;
    const isFirstExpiry = ending.kind === "expired" && this.#failureCount === 1;
    if (ending.kind === "expired" || this.#failureCount >= watchResumesMax) this.#resourceVersion = undefined;
    if (!isFirstExpiry) await this.#pause(ending, signal);
  }

  async #pause(ending: Exclude<Ending, { readonly kind: "fine" }>, signal: AbortSignal): Promise<void> {
    const { clock, random, log, path } = this.#options;
    const cause = ending.kind === "failed" ? { code: ending.failure.code, err: describeFailure(ending.failure) } : { code: "CLUSTER_GONE" };
    log.warn({ path, failureCount: this.#failureCount, ...cause }, "Lost sight of objects, will look again");
    const policy = { minMs: reflectorBackoffMsMin, maxMs: reflectorBackoffMsMax };
    const askedMs = ending.kind === "failed" ? (ending.retryAfterMs ?? 0) : 0;
    await clock.sleep(Math.max(askedMs, backoffMs(policy, this.#failureCount, random.fraction())) as DurationMs, signal);
  }

  async #list(signal: AbortSignal): Promise<Ending> {
    const listed = new Map<string, Entry<Kept>>();
    let continuation: string | undefined;
    for (;;) {
      const page = await this.#listPage(continuation, signal);
      this.#noteProgress();
      if (page.kind === "failed") return page;
      for (const entry of page.value.items.map((object) => this.#entryOf(object))) listed.set(textOf(entry.key), entry);
      continuation = page.value.metadata.continue;
      if (continuation === undefined || continuation === "") {
        this.#replace(listed, page.value.metadata.resourceVersion);
        return { kind: "fine" };
      }
    }
  }

  async #listPage(continuation: string | undefined, signal: AbortSignal): Promise<ApiResult<ObjectList<KubeObject>>> {
    const { api, path } = this.#options;
    const query = { ...this.#selector(), limit: String(listPageSize), ...(continuation === undefined ? {} : { continue: continuation }) };
    return await api.call<ObjectList<KubeObject>>({ method: "GET", path, query, signal });
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<Ending> {
    const { api, clock, path, random } = this.#options;
    const timeoutMs = watchMsMin + random.fraction() * (watchMsMax - watchMsMin);
    const query = {
      ...this.#selector(),
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion,
      timeoutSeconds: String(Math.round(timeoutMs / 1_000)),
    };
    const beganAtMs = clock.monotonicMs();
    const opened = await api.stream({ path, query, signal });
    if (opened.kind === "failed") return opened.failure.code === "CLUSTER_GONE" ? { kind: "expired" } : opened;
    const ending = await this.#follow(opened.value, signal);
    const broughtSomething = this.#resourceVersion !== resourceVersion || clock.monotonicMs() - beganAtMs >= watchHealthyMsMin;
    if (broughtSomething) this.#failureCount = 0;
    return ending.kind === "fine" && !broughtSomething ? this.#broken("it ended at once") : ending;
  }

  async #follow(stream: ApiStream, signal: AbortSignal): Promise<Ending> {
    const reader = new WatchEventReader({ bytesMax: watchEventBytesMax });
    try {
      while (!signal.aborted) {
        const piece = await this.#readWithin(stream, signal);
        if (piece === "silent") return this.#broken("it fell silent");
        if (piece === undefined) return { kind: "fine" };
        this.#noteProgress();
        const ending = this.#takeAll(reader.push(piece));
        if (ending !== undefined) return ending;
      }
      return { kind: "fine" };
    } finally {
      stream.stop();
    }
  }

  /** A connection that breaks in the middle is the usual end of a watch, not more than that. */
  async #readWithin(stream: ApiStream, signal: AbortSignal): Promise<Uint8Array | "silent" | undefined> {
    const done = new AbortController();
    const onAbort = (): void => stream.stop();
    signal.addEventListener("abort", onAbort, { once: true });
    const silence = this.#options.clock.sleep(watchSilenceMsMax, done.signal).then(() => "silent" as const);
    try {
      return await Promise.race([stream.read(), silence]);
    } catch {
      return undefined;
    } finally {
      done.abort();
      signal.removeEventListener("abort", onAbort);
    }
  }

  #takeAll(events: readonly WatchEvent[]): Ending | undefined {
    for (const event of events) {
      const ending = this.#take(event);
      if (ending !== undefined) return ending;
    }
    return undefined;
  }

  #take(event: WatchEvent): Ending | undefined {
    switch (event.kind) {
      case "changed":
        this.#put(this.#entryOf(event.object));
        this.#resourceVersion = event.object.metadata.resourceVersion;
        return undefined;
      case "deleted":
        this.#remove(this.#entryOf(event.object).key);
        this.#resourceVersion = event.object.metadata.resourceVersion;
        return undefined;
      case "bookmark":
        this.#resourceVersion = event.resourceVersion;
        return undefined;
      case "expired":
        return { kind: "expired" };
      case "broken":
        return this.#broken(event.problem);
    }
  }

  #replace(listed: ReadonlyMap<string, Entry<Kept>>, resourceVersion: string): void {
    for (const [text, { key }] of [...this.#entries]) {
      if (!listed.has(text)) this.#remove(key);
    }
    for (const entry of listed.values()) this.#put(entry);
    this.#resourceVersion = resourceVersion;
    this.#listedAtMs = this.#options.clock.monotonicMs();
  }

  #put(entry: Entry<Kept>): void {
    const text = textOf(entry.key);
    const before = this.#entries.get(text);
    if (before?.resourceVersion === entry.resourceVersion) return;
    this.#entries.set(text, entry);
    this.#options.onChange({ key: entry.key, now: entry.kept, ...(before === undefined ? {} : { before: before.kept }) });
  }

  #remove(key: ObjectKey): void {
    const before = this.#entries.get(textOf(key));
    if (!this.#entries.delete(textOf(key)) || before === undefined) return;
    this.#options.onChange({ key, before: before.kept });
  }

  #entryOf(object: KubeObject): Entry<Kept> {
    const { namespace = "", name, resourceVersion } = object.metadata;
    return { key: { namespace, name }, resourceVersion, kept: this.#options.keep(object) };
  }

  #isListDue(): boolean {
    return this.#listedAtMs !== undefined && this.#options.clock.monotonicMs() - this.#listedAtMs >= relistIntervalMs;
  }

  #broken(problem: string): Ending {
    const failure = new Failure("transient", "CLUSTER_UNREACHABLE", `watch ${this.#options.path}: ${problem}`);
    return { kind: "failed", failure };
  }

  #noteProgress(): void {
    this.#progressAtMs = this.#options.clock.monotonicMs();
  }

  #selector(): Readonly<Record<string, string>> {
    return this.#options.labelSelector === undefined ? {} : { labelSelector: this.#options.labelSelector };
  }
}

function textOf(key: ObjectKey): string {
  return `${key.namespace}/${key.name}`;
}
