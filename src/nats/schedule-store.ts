/**
 * Native schedules. They carry no message id: arming again inside the duplicate window would be swallowed and no wake
 * would ever come; the expected sequence of their subject is their guard.
 */
import { noBytes } from "../base/bytes.ts";
import { streamNames, scheduleSubject, wakeSubject } from "../protocol/names.ts";
import type { ArmedLook, ScheduleStore } from "../worker/ports.ts";
import type { Armed } from "../worker/ports.ts";
import { armedHeaders, armedIn } from "./armed.ts";
import type { JetStream, LastMessage } from "./core/jetstream.ts";
import { toldOutcome, writeOutcome } from "./outcomes.ts";
import type { StageWriter } from "./stage-writer.ts";

/** Schedules and their wakes, both in one stream. */
export function natsScheduleStore(jetStream: JetStream, writer: StageWriter): ScheduleStore {
  return {
    async arm(items) {
      const messages = items.map((item) => ({
        subject: scheduleSubject(item.key),
        headers: armedHeaders(item),
        body: noBytes,
        expectedLastSubjectSequence: item.expected ?? 0,
        schedule: { fireAtMs: item.fireAtMs, target: wakeSubject(item.key) },
      }));
      const outcomes = await writer.write(streamNames.schedules, messages);
      return outcomes.map((outcome, index) => writeOutcome(outcome, items[index]?.expected));
    },
    // Firing turns a schedule into a wake in one step, so that whoever looks in this order misses neither.
    async look(keys, from = "leader") {
      const schedules = await jetStream.readLast({ stream: streamNames.schedules, subjects: keys.map(scheduleSubject), from });
      const wakes = await jetStream.readLast({ stream: streamNames.schedules, subjects: keys.map(wakeSubject), from });
      return schedules.map((schedule, index) => lookOf(schedule, wakes[index] ?? { kind: "absent" }));
    },
    async disarm(keys) {
      const told = await Promise.all(keys.map((key) => jetStream.purge({ stream: streamNames.schedules, subject: scheduleSubject(key) })));
      return told.map(toldOutcome);
    },
  };
}

function lookOf(schedule: LastMessage, wake: LastMessage): ArmedLook {
  if (schedule.kind === "failed") return schedule;
  if (wake.kind === "failed") return wake;
  const seen: { schedule?: Armed; wake?: Armed } = {};
  if (schedule.kind === "found") seen.schedule = armedIn(schedule.message);
  if (wake.kind === "found") seen.wake = armedIn(wake.message);
  return { kind: "seen", ...seen };
}
