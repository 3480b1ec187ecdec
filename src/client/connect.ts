/** Connects a client with the real clock, randomness and hashing. */
import { connectTimeoutMs } from "../base/limits.ts";
import { Failure } from "../base/failure.ts";
import type { DurationMs } from "../base/units.ts";
import { openBroker } from "../nats/core/connection.ts";
import type { BrokerAuth, BrokerTls } from "../nats/core/jetstream.ts";
import { replyPrefixDefault } from "../protocol/names.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { systemSha256 } from "../system/sha256.ts";
import { timerClient, type TimerClient } from "./client.ts";

/** How to reach the broker that holds the timers. */
export type TimersOptions = {
  /** Servers of one NATS system, such as `nats://localhost:4222`. */
  readonly servers: readonly string[];
  /** Name of the connection as the broker shows it; `durable-timer-client` by default. */
  readonly name?: string;
  /** JetStream domain of the streams. */
  readonly domain?: string;
  readonly auth?: BrokerAuth;
  readonly tls?: BrokerTls;
  /** `spec.nats.replyPrefix` of the resource, when it is not the default: outcomes arrive below it. */
  readonly replyPrefix?: string;
  /** Time for the first connection, 10 seconds by default. Later losses are waited out without limit. */
  readonly connectTimeoutMs?: number;
};

/**
 * Connects to the broker. Rejects with a Failure when that does not succeed in time; from then on the connection comes
 * back by itself whenever it is lost, until `close`.
 */
export async function connectTimers(options: TimersOptions): Promise<TimerClient> {
  const { servers, name, domain, auth, tls, replyPrefix } = options;
  // Callers without types may leave it out altogether.
  if (!Array.isArray(servers) || servers.length === 0) throw new Failure("invalid", "REQUEST_INVALID", "connect timers: servers must name at least one server");
  const connection = openBroker(
    {
      servers,
      name: name ?? "durable-timer-client",
      ...(domain === undefined ? {} : { domain }),
      ...(auth === undefined ? {} : { auth }),
      ...(tls === undefined ? {} : { tls }),
    },
    { clock: systemClock, random: systemRandom },
  );
  const told = await connection.connected((options.connectTimeoutMs ?? connectTimeoutMs) as DurationMs);
  if (told.kind === "failed") {
    await connection.close();
    throw new Failure(told.failure.kind, told.failure.code, `connect timers to ${servers.join(", ")}`, { cause: told.failure });
  }
  return timerClient({ connection, replyPrefix: replyPrefix ?? replyPrefixDefault, clock: systemClock, random: systemRandom, sha256: systemSha256 });
}
