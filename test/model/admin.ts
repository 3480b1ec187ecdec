/** The control plane of the model: creating never updates, updating never creates. */
import type { EpochMs } from "../../src/base/units.ts";
import type { ConsumerState, JetStreamAdmin, StreamState, Told, UserState } from "../../src/nats/core/jetstream.ts";
import type { ModelConnection } from "./connection.ts";
import { apiError, consumerNotFound, consumerStateOf, streamNotFound, streamStateOf } from "./jetstream.ts";
import { matches } from "./store.ts";
import type { ModelStream, StreamConfig } from "./stream.ts";

type Answer<T> = { readonly value: T } | { readonly code: number; readonly status: number };

export class ModelAdmin implements JetStreamAdmin {
  readonly #connection: ModelConnection;

  constructor(connection: ModelConnection) {
    this.#connection = connection;
  }

  createStream(config: StreamConfig): Promise<Told<StreamState>> {
    return this.#ask(`create stream ${nameOf(config)}`, () => {
      const { broker } = this.#connection;
      const present = broker.streams.get(nameOf(config));
      if (present !== undefined) return isSame(present.config, config) ? { value: streamStateOf(broker, present) } : refused(10058);
      if (Number(config["num_replicas"] ?? 1) > broker.replicas) return refused(broker.replicas === 1 ? 10074 : 10005);
      const code = problemOf(config, [...broker.streams.values()]);
      return code === undefined ? { value: streamStateOf(broker, broker.addStream(config)) } : refused(code);
    });
  }

  updateStream(config: StreamConfig): Promise<Told<StreamState>> {
    return this.#ask(`update stream ${nameOf(config)}`, () => {
      const { broker } = this.#connection;
      const present = broker.streams.get(nameOf(config));
      if (present === undefined) return streamNotFound;
      if (["storage", "retention", "persist_mode"].some((field) => config[field] !== present.config[field])) return refused(10052);
      const code = problemOf(config, [...broker.streams.values()].filter((other) => other !== present));
      if (code !== undefined) return refused(code);
      present.config = config;
      return { value: streamStateOf(broker, present) };
    });
  }

  deleteStream(stream: string): Promise<Told<null>> {
    return this.#ask(`delete stream ${stream}`, () => (this.#connection.broker.removeStream(stream) ? { value: null } : streamNotFound));
  }

  createConsumer(stream: string, config: StreamConfig): Promise<Told<ConsumerState>> {
    return this.#ask(`create consumer ${String(config["durable_name"])} of ${stream}`, () => {
      const { broker } = this.#connection;
      const found = broker.streams.get(stream);
      if (found === undefined) return streamNotFound;
      const present = found.consumers.get(String(config["durable_name"]));
      if (present !== undefined) return isSame(present.config, config) ? { value: consumerStateOf(broker, present) } : refused(10148);
      if (found.config["retention"] === "workqueue" && [...found.consumers.values()].some((other) => overlap(other.config, config))) return refused(10100);
      return { value: consumerStateOf(broker, found.addConsumer(config)) };
    });
  }

  updateConsumer(stream: string, config: StreamConfig): Promise<Told<ConsumerState>> {
    return this.#ask(`update consumer ${String(config["durable_name"])} of ${stream}`, () => {
      const { broker } = this.#connection;
      const consumer = broker.streams.get(stream)?.consumers.get(String(config["durable_name"]));
      if (consumer === undefined) return refused(10149);
      consumer.config = config;
      return { value: consumerStateOf(broker, consumer) };
    });
  }

  pauseConsumer({ stream, consumer, untilMs }: { readonly stream: string; readonly consumer: string; readonly untilMs: EpochMs }): Promise<Told<null>> {
    return this.#ask(`pause consumer ${consumer} of ${stream}`, () => {
      const found = this.#connection.broker.streams.get(stream)?.consumers.get(consumer);
      if (found === undefined) return consumerNotFound;
      found.pauseUntil(untilMs);
      return { value: null };
    });
  }

  user(): Promise<Told<UserState>> {
    return this.#ask("ask who this user is", () => ({ value: { accountName: "model", serverTimeMs: Math.floor(this.#connection.broker.clockMs()) as EpochMs } }));
  }

  async #ask<T>(attempt: string, act: () => Answer<T>): Promise<Told<T>> {
    const reply = await this.#connection.request({ operation: { kind: "info", stream: "", subject: "" }, attempt, act });
    if (reply.kind !== "answer") return { kind: "failed", failure: reply.failure };
    return "value" in reply.value ? { kind: "told", value: reply.value.value } : { kind: "failed", failure: apiError(attempt, reply.value) };
  }
}

function nameOf(config: StreamConfig): string {
  return String(config["name"]);
}

function refused(code: number): { readonly code: number; readonly status: number } {
  return { code, status: 400 };
}

function problemOf(config: StreamConfig, others: readonly ModelStream[]): number | undefined {
  if (config["allow_msg_schedules"] === true && config["discard"] === "new") return 10052;
  const subjects = config["subjects"] as readonly string[];
  return others.some((other) => subjects.some((subject) => other.covers(subject) || (other.config["subjects"] as readonly string[]).some((own) => matches(subject, own)))) ? 10065 : undefined;
}

function overlap(a: StreamConfig, b: StreamConfig): boolean {
  const [left, right] = [a, b].map(({ filter_subject: filter }) => (typeof filter === "string" ? filter : ">"));
  if (left === undefined || right === undefined) return false;
  return matches(left, right) || matches(right, left);
}

function isSame(a: StreamConfig, b: StreamConfig): boolean {
  const sorted = (config: StreamConfig): string => JSON.stringify(Object.entries(config).sort(([x], [y]) => (x < y ? -1 : 1)));
  return sorted(a) === sorted(b);
}
