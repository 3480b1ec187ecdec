/**
 * The client SDK of durable timers.
 *
 * `connectTimers` gives a client that starts timers, iterates their resumes and gives feedback. Everything else here are
 * the types of its arguments and answers, and the Failure that every rejection carries.
 */
export { Failure, failureIn, describeFailure } from "../base/failure.ts";
export type { FailureCode, FailureKind } from "../base/failure.ts";
export type { DurationMs, EpochMs } from "../base/units.ts";
export type { BrokerAuth, BrokerTls } from "../nats/core/jetstream.ts";
export type { Resume } from "../protocol/resume.ts";
export type { Lineage } from "../timer/identity.ts";
export type { FailureCause } from "../timer/record.ts";
export { connectTimers } from "./connect.ts";
export type { TimersOptions } from "./connect.ts";
export type { CommandReceipt, FeedbackOptions, SendOptions, StartReceipt, TimerClient } from "./client.ts";
export type { FeedbackTarget } from "./feedback.ts";
export type { CommandOutcome, TimerStanding } from "./outcome.ts";
export type { InvalidResume, ResumeDelivery, ResumesOptions } from "./resumes.ts";
export type { StartRequest } from "./start.ts";
