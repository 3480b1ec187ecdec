/**
 * The control plane. Creating never updates and updating never creates: the server's default, to do either, would let a
 * second owner take over a stream in silence.
 */
import { brokerApiLevelMin } from "../../base/limits.ts";
import { isoFromEpochMs } from "../../base/units.ts";
import type { EpochMs } from "../../base/units.ts";
import { consumerStateFrom, streamStateFrom, userStateFrom } from "./info.ts";
import type { ConsumerState, JetStreamAdmin, StreamState, Told, UserState } from "./jetstream.ts";
import { requestJson } from "./link.ts";
import type { Link } from "./link.ts";

type Config = Readonly<Record<string, unknown>>;

/** Administration over the present session of a connection. */
export class NatsAdmin implements JetStreamAdmin {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  /** The server answers a creation with the same configuration as if it had just created the stream. */
  createStream(config: Config): Promise<Told<StreamState>> {
    return this.#writeStream("CREATE", config);
  }

  updateStream(config: Config): Promise<Told<StreamState>> {
    return this.#writeStream("UPDATE", config);
  }

  async deleteStream(stream: string): Promise<Told<null>> {
    return nothing(await this.#request(`STREAM.DELETE.${stream}`, { attempt: `delete stream ${stream}` }));
  }

  createConsumer(stream: string, config: Config): Promise<Told<ConsumerState>> {
    return this.#writeConsumer("create", stream, config);
  }

  updateConsumer(stream: string, config: Config): Promise<Told<ConsumerState>> {
    return this.#writeConsumer("update", stream, config);
  }

  async pauseConsumer(target: { readonly stream: string; readonly consumer: string; readonly untilMs: EpochMs }): Promise<Told<null>> {
    const { stream, consumer, untilMs } = target;
    return nothing(await this.#request(`CONSUMER.PAUSE.${stream}.${consumer}`, {
      attempt: `pause consumer ${consumer} of ${stream}`,
      payload: { pause_until: isoFromEpochMs(untilMs) },
    }));
  }

  async user(): Promise<Told<UserState>> {
    const attempt = "ask who this user is";
    const told = await requestJson(this.#link, { subject: "$SYS.REQ.USER.INFO", attempt });
    return told.kind === "failed" ? told : userStateFrom(attempt, told.value);
  }

  async #writeStream(verb: "CREATE" | "UPDATE", config: Config): Promise<Told<StreamState>> {
    const stream = String(config["name"]);
    const attempt = `${verb.toLowerCase()} stream ${stream}`;
    const told = await this.#request(`STREAM.${verb}.${stream}`, { attempt, payload: config });
    return told.kind === "failed" ? told : streamStateFrom(attempt, told.value);
  }

  async #writeConsumer(action: "create" | "update", stream: string, config: Config): Promise<Told<ConsumerState>> {
    const consumer = String(config["durable_name"] ?? config["name"]);
    const attempt = `${action} consumer ${consumer} of ${stream}`;
    const payload = { stream_name: stream, config: { ...config, name: consumer }, action };
    const told = await this.#request(consumerCreateSubject(stream, consumer, config), { attempt, payload });
    return told.kind === "failed" ? told : consumerStateFrom(attempt, told.value);
  }

  #request(subject: string, request: { readonly attempt: string; readonly payload?: unknown }): Promise<Told<Record<string, unknown>>> {
    return requestJson(this.#link, { subject: `${this.#link.apiPrefix}.${subject}`, headers: requiredApiLevel, ...request });
  }
}

/** A single filter is part of the subject, so that permissions can be granted for it. */
export function consumerCreateSubject(stream: string, consumer: string, config: Config): string {
  const filter = config["filter_subject"];
  const base = `CONSUMER.CREATE.${stream}.${consumer}`;
  return typeof filter === "string" && filter !== "" ? `${base}.${filter}` : base;
}

/** Makes a server that lacks a feature refuse the request; without it, it would drop what it does not know. */
const requiredApiLevel = [["Nats-Required-Api-Level", String(brokerApiLevelMin)]] as const;

function nothing(told: Told<unknown>): Told<null> {
  return told.kind === "failed" ? told : { kind: "told", value: null };
}
