/** Whether a broker is new enough. Older ones accept what they do not know and drop it without a word. */
import { Failure } from "../../base/failure.ts";
import { brokerApiLevelMin, brokerVersionMin } from "../../base/limits.ts";
import type { AccountState, BrokerIdentity } from "./jetstream.ts";

/** What is wrong with the broker, or undefined. `account` is asked of the cluster's own leader and may be missing. */
export function brokerProblem(identity: Pick<BrokerIdentity, "version" | "serverName">, account?: Pick<AccountState, "apiLevel">): Failure | undefined {
  const remedy = `install NATS server ${brokerVersionMin.join(".")} or newer on every server`;
  if (isOlder(identity.version, brokerVersionMin)) {
    return new Failure("invalid", "BROKER_TOO_OLD", `NATS server ${identity.serverName} is ${identity.version}: ${remedy}`);
  }
  if (account !== undefined && account.apiLevel < brokerApiLevelMin) {
    const levels = `JetStream API level ${String(account.apiLevel)} of at least ${String(brokerApiLevelMin)}`;
    return new Failure("invalid", "BROKER_TOO_OLD", `the NATS servers offer ${levels}: ${remedy}`);
  }
  return undefined;
}

/** A version that cannot be read counts as older: nothing is known of it. A pre-release counts as its release. */
function isOlder(version: string, min: readonly [number, number, number]): boolean {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version);
  if (match === null) return true;
  const parts = match.slice(1).map(Number);
  for (const [index, least] of min.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}
