/**
 * From a delivered message to work for `step`, per loop. A message that cannot be work says why; it is then rejected
 * (a command) or dropped (a wake that names no timer, which only a foreign writer can have made).
 */
import { dueAtMsMax } from "../base/limits.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { EpochMs } from "../base/units.ts";
import { readCommand, type CommandLimits, type MalformedCommand } from "../protocol/command.ts";
import type { StoredMessage } from "../protocol/message.ts";
import { headerNames, timerKeyFromSubject } from "../protocol/names.ts";
import type { SourceName } from "./ports.ts";
import type { Work } from "./step.ts";

export type Decoded =
  | { readonly kind: "work"; readonly work: Work; readonly replyTo?: string; /** Not before this broker time. */ readonly dueAtMs?: EpochMs }
  | { readonly kind: "malformed"; readonly command: MalformedCommand }
  | { readonly kind: "foreign"; readonly problem: string };

/** Decodes a message of the loop's source. Never throws, whatever the message holds. */
export function decode(loop: SourceName, message: StoredMessage, options: { readonly limits: CommandLimits; readonly sha256: Sha256 }): Decoded {
  return loop === "wake" ? decodeWake(message) : decodeCommand(message, options);
}

function decodeCommand(message: StoredMessage, { limits, sha256 }: { readonly limits: CommandLimits; readonly sha256: Sha256 }): Decoded {
  const command = readCommand(message, limits, sha256);
  if (!command.ok) return { kind: "malformed", command };
  const { key, input, contextHeader, body, replyTo } = command;
  const work: Work = input.kind === "start"
    ? { key, input, basis: "assumed", snapshot: { contextHeader, body } }
    : { key, input, basis: "replica" };
  return { kind: "work", work, ...(replyTo === undefined ? {} : { replyTo }) };
}

function decodeWake(message: StoredMessage): Decoded {
  const key = timerKeyFromSubject(message.subject);
  const fence = fencePattern.exec(message.headers.get(headerNames.fence) ?? "");
  const dueAt = instantPattern.exec(message.headers.get(headerNames.dueAt) ?? "");
  const dueAtMs = Number(dueAt?.[0] ?? Number.NaN);
  if (key === undefined || fence === null || !(dueAtMs <= dueAtMsMax)) {
    return { kind: "foreign", problem: "a wake without timer, fence or due time" };
  }
  const input = { kind: "wake", generation: Number(fence[1]), fence: Number(fence[2]) } as const;
  return { kind: "work", work: { key, input, basis: "replica", dueAtMs: dueAtMs as EpochMs }, dueAtMs: dueAtMs as EpochMs };
}

const instantPattern = /^[0-9]{1,16}$/;
const fencePattern = /^([0-9]{1,10}):([0-9]{1,10})$/;
