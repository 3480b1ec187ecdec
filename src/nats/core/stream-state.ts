/** INFO requests about streams, consumers and the account; each is answered by the leader of its subject. */
import { accountStateFrom, consumerStateFrom, streamStateFrom } from "./info.ts";
import type { AccountState, ConsumerState, StreamState, Told } from "./jetstream.ts";
import { requestJson } from "./link.ts";
import type { Link } from "./link.ts";

/** INFO of one stream; a missing one is a failure. */
export async function streamState(link: Link, stream: string): Promise<Told<StreamState>> {
  const attempt = `ask for stream ${stream}`;
  const told = await requestJson(link, { subject: `${link.apiPrefix}.STREAM.INFO.${stream}`, attempt });
  return told.kind === "failed" ? told : streamStateFrom(attempt, told.value);
}

/** INFO of one consumer; a missing one is a failure. */
export async function consumerState(link: Link, stream: string, consumer: string): Promise<Told<ConsumerState>> {
  const attempt = `ask for consumer ${consumer} of ${stream}`;
  const told = await requestJson(link, { subject: `${link.apiPrefix}.CONSUMER.INFO.${stream}.${consumer}`, attempt });
  return told.kind === "failed" ? told : consumerStateFrom(attempt, told.value);
}

/** INFO of the account. */
export async function accountState(link: Link): Promise<Told<AccountState>> {
  const attempt = "ask for the account's usage";
  const told = await requestJson(link, { subject: `${link.apiPrefix}.INFO`, attempt });
  return told.kind === "failed" ? told : accountStateFrom(attempt, told.value);
}
