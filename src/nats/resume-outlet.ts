/** Resumes: the owed context, and exactly the bytes that were saved (I2). */
import { resumeMessageId } from "../protocol/ids.ts";
import { headerNames, resumeSubject, streamNames } from "../protocol/names.ts";
import { resumeContextHeader } from "../protocol/resume.ts";
import type { ResumeOutlet } from "../worker/ports.ts";
import { writeOutcome } from "./outcomes.ts";
import type { StageWriter } from "./stage-writer.ts";

/** Resumes with a message id each, so that a second copy within the duplicate window is not stored. */
export function natsResumeOutlet(writer: StageWriter): ResumeOutlet {
  return {
    async publish(items) {
      const messages = items.map(({ key, record, body }) => ({
        subject: resumeSubject,
        headers: [[headerNames.context, resumeContextHeader(record)]] as const,
        body,
        messageId: resumeMessageId(key, record),
      }));
      const outcomes = await writer.write(streamNames.resumes, messages);
      return outcomes.map((outcome) => writeOutcome(outcome));
    },
  };
}
