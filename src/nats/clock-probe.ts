/** The clocks of the servers that lead the streams whose stamps and wakes have to agree. */
import type { Clock } from "../base/clock.ts";
import { streamNames, type StreamRole } from "../protocol/names.ts";
import type { ClockProbe, ClockReading } from "../worker/clock-watch.ts";
import type { JetStream } from "./core/jetstream.ts";

/** Asks the leader of each stream once per reading; a server that leads several of them is told once, at its best. */
export function natsClockProbe(jetStream: JetStream, clock: Clock): ClockProbe {
  return {
    async read() {
      const readings = new Map<string, ClockReading>();
      for (const role of stampingStreams) {
        const reading = await readClock({ jetStream, clock }, streamNames[role]);
        if (reading === undefined) continue;
        const before = readings.get(reading.server);
        if (before === undefined || reading.errorMs < before.errorMs) readings.set(reading.server, reading);
      }
      return [...readings.values()];
    },
  };
}

async function readClock({ jetStream, clock }: { readonly jetStream: JetStream; readonly clock: Clock }, stream: string): Promise<ClockReading | undefined> {
  const [askedAtMs, askedAtWallMs] = [clock.monotonicMs(), clock.nowMs()];
  const told = await jetStream.streamState(stream);
  const tripMs = clock.monotonicMs() - askedAtMs;
  if (told.kind === "failed" || told.value.serverTimeMs === undefined) return undefined;
  // A server of its own has no leader's name. Both clocks are read in whole milliseconds.
  return { server: told.value.leader ?? "", aheadMs: told.value.serverTimeMs - (askedAtWallMs + tripMs / 2), errorMs: tripMs / 2 + 1 };
}

/** Starts and feedback are stamped by the first two, wakes judged by the third. */
const stampingStreams: readonly StreamRole[] = ["commands", "feedback", "schedules"];
