/** What the simulated workers allow a command to ask for. */
import type { CommandLimits } from "../../src/protocol/command.ts";
import { replyPrefixDefault } from "../../src/protocol/names.ts";

export const limits: CommandLimits = { payloadBytesMax: 100_000, delayMsMax: 315_360_000_000 as never, retriesMax: 100, replyPrefix: replyPrefixDefault };
