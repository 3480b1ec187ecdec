/**
 * Every bound of the product in one place (I13). Relations between them are asserted at the end, so that raising one
 * cannot quietly break another. Units are in the names.
 */
import { assert } from "./assert.ts";
import type { DurationMs, EpochMs } from "./units.ts";

const ms = (value: number): DurationMs => value as DurationMs;

// --- The wire contract -----------------------------------------------------------------------------------------

/** Largest Durable-Timer-Context header, in bytes. */
export const contextBytesMax = 8 * 1024;
/** Deepest nesting of objects in a context. */
export const contextDepthMax = 4;
/** Most keys in one context, all levels together. */
export const contextKeyCountMax = 64;
/** Largest flow id, execution id, node id, edge id, in UTF-8 bytes. */
export const idBytesMax = 256;
/** Largest flow version, in UTF-8 bytes. */
export const flowVersionBytesMax = 128;
/** A flow id of at most this many plain characters appears in subjects as itself. */
export const flowTokenCharsMax = 64;
/** Largest failure code of a fail command, in UTF-8 bytes. */
export const failureCodeBytesMax = 128;
/** Largest failure message of a fail command, in UTF-8 bytes. */
export const failureMessageBytesMax = 1024;
/** Largest lineage in a context, in bytes of its escaped JSON: the rest of the header is for hashes, times and failures. */
export const lineageBytesMax = 6 * 1024;
/** Default and largest configurable payload, in bytes; a broker's max_payload may lower it further. */
export const payloadBytesMax = 1_000_000;
/** Kept free below the broker's max_payload for headers of stored messages, in bytes. */
export const payloadHeadroomBytes = 32 * 1024;
/** Largest reply subject, in bytes. */
export const replySubjectBytesMax = 256;
/** Largest generation, fence and retry count: counters stay exact in every client's number type. */
export const counterMax = 2_147_483_647;
/** Default for the largest number of retries that a start may ask for. */
export const retriesMaxDefault = 1_000;
/** Default of the time after which an elapsed timer counts as unanswered: a day. */
export const feedbackTimeoutMsDefault = ms(86_400_000);
/** Shortest configurable one: several sweeps find it, and no message id of the first resume is remembered any more. */
export const feedbackTimeoutMsMin = ms(300_000);
/** Default for the longest delay: ten years. */
export const delayMsMaxDefault = ms(315_360_000_000);
/** Last instant a timer may be due: NATS keeps schedules as 64-bit nanoseconds, which end in April 2262. */
export const dueAtMsMax = Date.UTC(2262, 0, 1) as EpochMs;

// --- Broker ----------------------------------------------------------------------------------------------------

/** Oldest broker that is accepted, as [major, minor, patch]. */
export const brokerVersionMin = [2, 14, 4] as const;
/** Lowest JetStream API level that has every feature in use. */
export const brokerApiLevelMin = 4;
/** Time to wait for a publish acknowledgement before its outcome counts as unknown. */
export const publishTimeoutMs = ms(5_000);
/** Time to wait for a JetStream API reply. */
export const apiTimeoutMs = ms(5_000);
/** Publishes in flight on one connection. */
export const publishesInFlightMax = 4_096;
/** Messages in one atomic batch; the broker's own limit is 1,000. */
export const atomicBatchSizeMax = 500;
/** Bytes in one atomic batch. */
export const atomicBatchBytesMax = 8 * 1024 * 1024;
/** Below this many messages at one replica, single publishes are cheaper than a batch. */
export const atomicBatchSizeMin = 24;
/** Subjects in one multi-get; the broker's own limit is 1,024. */
export const multiGetSizeMax = 512;
/** Bytes of one reply to a multi-get. */
export const multiGetBytesMax = 8 * 1024 * 1024;
/** Leader reads in flight at once. */
export const leaderReadsInFlightMax = 32;
/** A connection attempt to one server gives up after this time. */
export const dialTimeoutMs = ms(5_000);
/** Delay before a lost connection is dialled again: grows from the first to the second. */
export const reconnectDelayMsMin = ms(100);
export const reconnectDelayMsMax = ms(5_000);
/** The broker is asked for a sign of life this often; two missing answers end the connection. */
export const pingIntervalMs = ms(10_000);
/** Longest wait for what is in flight when a connection is closed. */
export const closeTimeoutMs = ms(5_000);
/** A pull request lives this long before it is renewed. */
export const pullExpiresMs = ms(10_000);
/** While a pull request waits, the broker shows this often that it still knows it. */
export const pullHeartbeatMs = ms(2_000);
/** What was delivered may be settled for this long after its consumer was last seen; it is looked for at every heartbeat. */
export const custodyTrustMs = ms(10_000);
/** Delay before a refused pull is tried again: grows from the first to the second. */
export const pullBackoffMsMin = ms(100);
export const pullBackoffMsMax = ms(2_000);
/** A consumer that holds messages and delivers none of them for this long, while asked, is asked anew. */
export const pullStallMsMax = ms(10_000);
/** Bytes of messages that one source or walk asks for at once, and holds. */
export const pullBufferBytesMax = 12 * 1024 * 1024;
/** Added to the broker's max_payload for subject, reply and headers: every message fits in a pull of that size. */
export const messageOverheadBytesMax = 128 * 1024;
/** The broker cuts off a client for which this many bytes wait: its own default. */
export const brokerPendingBytesMax = 64 * 1024 * 1024;
/** A walk over a stream gives up after this many attempts in a row without a message. */
export const scanAttemptsMax = 10;
/** Delay before a walk tries again. */
export const scanRetryDelayMs = ms(2_000);
/** How long a message id suppresses a second publish. */
export const duplicateWindowMs = ms(120_000);
/** How long the marker of a removed state record stays. */
export const stateMarkerTtlMs = ms(300_000);

// --- Broker clock ----------------------------------------------------------------------------------------------

/** Assumed largest drift of this machine's monotonic clock, in parts per million. */
export const clockDriftPpm = 500;
/** A clock sample older than this is not used. */
export const clockSampleAgeMsMax = ms(10_000);

/** How often a worker compares its wall clock with those of the brokers that lead its streams. */
export const clockWatchIntervalMs = ms(30_000);
/** Clocks that are surely further apart than this are worth a warning, and how often it is repeated at most. */
export const clockSkewMsMax = ms(1_000);
export const clockWarningIntervalMs = ms(600_000);

// --- Worker ----------------------------------------------------------------------------------------------------

/** Messages decided and written together. */
export const workerBatchSizeMax = 256;
/** Bytes of message bodies decided and written together. */
export const workerBatchBytesMax = 8 * 1024 * 1024;
/** Batches in flight per loop. */
export const workerBatchesInFlightMax = 2;
/** Bytes of messages in hand per loop, their headers included, beyond which nothing more is taken: what is being written, and the next batch. */
export const workerInHandBytesMax = 24 * 1024 * 1024;
/** How early a schedule is aimed before its due time; the worker holds the wake for the rest. */
export const wakeLeadMs = ms(500);
/** Acknowledgement wait of commands, feedback and wakes. */
export const ackWaitMs = ms(12_000);
/** In-flight messages have their acknowledgement wait extended this often. */
export const ackExtendIntervalMs = ms(4_000);
/** A decision older than this is dropped and made anew. */
export const decisionAgeMsMax = ms(30_000);
/** Second look of a leader at input newer than the record. */
export const newerInputRecheckMs = ms(2_000);
/** Messages in hand per loop that wait for that second look, beside the look-ahead. */
export const doubtfulCountMax = 8_000;
/** Bytes of them; what is beyond is handed back until the second look. */
export const doubtfulBytesMax = 8 * 1024 * 1024;
/** Messages that were handed back and of which a loop remembers something. */
export const messagesRememberedMax = 16_384;
/** A wake may come this much before its timer is due and is held; the broker's clock was another when an earlier one was fired. */
export const wakeEarlyMsMax = ms(10_000);
/** Rounds of read, decide, write for one message before it is handed back. */
export const settleRoundsMax = 5;
/** First and longest delay before a message handed back is delivered again: what recovers is noticed within the second. */
export const redeliveryDelayMs = ms(1_000);
export const redeliveryDelayMsMax = ms(10_000);
/** Commands of corrupt timers that one loop of a worker keeps waiting, and how long each waits before it is looked at again. */
export const corruptHeldCountMax = 64;
export const corruptHoldMs = ms(60_000);
/** A wake of a corrupt timer comes again after this time, and later and later up to the second. */
export const setAsideMsMin = ms(60_000);
export const setAsideMsMax = ms(3_600_000);
/** Wakes in hand per worker (held until due or being written), at most. */
export const wakesHeldMax = 2_000;
/** Slots per rejection code in which the contexts of rejected commands are kept. */
export const rejectedSlotCount = 256;
/** Characters that are kept of a rejected command's context, and of what is wrong with it. */
export const rejectedTextCharsMax = 2_048;
/** Contexts of rejected commands are kept this long: a week, after which a flood of them gives its space back. */
export const rejectedTtlMs = ms(604_800_000);
/** Contexts that a worker keeps per code and second, once as many as may be on their way were kept at once. */
export const rejectedPerSecondMax = 16;
/** Contexts of rejected commands on their way to their slots; beyond, they are dropped. */
export const rejectedInFlightMax = 64;

// --- A worker's life -------------------------------------------------------------------------------------------

/** First and longest pause between two looks at a topology that a starting worker cannot use yet. */
export const topologyCheckMsMin = ms(250);
export const topologyCheckMsMax = ms(5_000);
/** A loop that has not gone round for this long hangs. */
export const loopStallMsMax = ms(60_000);
/** A batch that takes longer than this hangs: each of its waits has a bound, and all of them together are less. */
export const workerBatchMsMax = ms(300_000);
/** Time for the broker to take back the pulls of a worker that stops. */
export const sourceCloseMsMax = ms(2_000);

// --- Admission -------------------------------------------------------------------------------------------------

/** Shortest and longest time between two looks at the broker's free space while starts are admitted. */
export const admissionPollMsMin = ms(100);
export const admissionPollMsMax = ms(2_000);
/** Usage that was seen longer ago than this counts as unknown, and starts are not taken. */
export const admissionUsageAgeMsMax = ms(10_000);

// --- Sweep -----------------------------------------------------------------------------------------------------

/** State records read per pull of the walk: everything else on the connection waits behind what one pull brings. */
export const sweepPullSizeMax = 2_000;
/** Records of a walk that are decoded in one go: whatever else the process has to do waits for so long. */
export const sweepPortionSizeMax = 256;
/** Records examined together against schedules and wakes: as many as one request may ask for. */
export const sweepProbeSizeMax = 512;
/** Pause after each portion of the walk, in which whatever else the process has to do gets its turn. */
export const sweepPauseMs = ms(1);
/** Stuck schedules published again in one sweep. */
export const sweepRepublishCountMax = 1_000;
/** Time between the two looks which make an overdue schedule stuck. */
export const sweepStuckRecheckMs = ms(2_000);
/** Lease of a sweep; taken over by another worker when it is this old. */
export const sweepLeaseMs = ms(60_000);
/** Overdue schedules that one sweep looks at for a second time. */
export const sweepSuspectCountMax = 4_096;
/** Unanswered timers that one sweep ends or resumes again: a new policy must not fill RESUMES in one go. */
export const sweepTimeoutCountMax = 10_000;
/** How often a worker asks whether SCHEDULES is still the stream that it was. */
export const sweepObserveMs = ms(15_000);
/** How often a worker tries again while a sweep is wanted and another worker holds the lease. */
export const sweepTickMs = ms(5_000);
/** First delay before a sweep that had failures is repeated; doubled each time, up to the interval. */
export const sweepRetryMsMin = ms(10_000);
/** Records that cannot be carried on, reported one by one in a sweep; the rest is only counted. */
export const sweepReportCountMax = 10;
/** After a break, resumes elapsed up to this long before the last summary are published again. */
export const sweepBreakMarginMs = ms(600_000);

// --- Collection of ended timers --------------------------------------------------------------------------------

/** Ended timers and snapshots looked at together. */
export const collectionPortionSizeMax = 256;
/** Ended timers and snapshots looked at per second, at most; beside that, half of the time is left to others. */
export const collectionPerSecondMax = 1_000;
/** How often the archive is looked at for timers that ended long enough ago. */
export const collectionIntervalMs = ms(300_000);
/** How often all snapshots are looked at, for those that nothing belongs to. */
export const snapshotWalkIntervalMs = ms(86_400_000);
/** A snapshot without record and archive is an orphan from this age on. */
export const orphanAgeMs = ms(2_592_000_000);
/** How long the marker of a removed archive record stays. */
export const archiveMarkerTtlMs = ms(5_000);
/** Shortest times for which an archive, and after it its tombstone, may be kept. */
export const archiveAgeMsMin = ms(3_600_000);
export const dedupeMsMin = ms(3_600_000);
/** Longest time for either: beyond fifty years is for ever, which has a word of its own. */
export const retentionMsMax = ms(1_576_800_000_000);

// --- Health endpoint -------------------------------------------------------------------------------------------

/** Time for one request to arrive completely. */
export const healthRequestMsMax = ms(5_000);
/** Largest request line and headers, in bytes. */
export const healthHeaderBytesMax = 8 * 1024;
/** Connections at once: probes, a scraper or two, and a person. */
export const healthConnectionCountMax = 64;
/** Kinds of operator actions that are counted by name; more are counted together. */
export const actionKindCountMax = 64;

// --- Client ----------------------------------------------------------------------------------------------------

/** Groups of commands that a client has under way per stream. */
export const commandGroupsInFlightMax = 2;
/** How often a client sends one command whose acknowledgement did not come, or that was refused for the moment. */
export const commandAttemptCountMax = 4;
/** First delay before a client sends a command again; doubled each time. */
export const commandRetryDelayMs = ms(250);
/** Default time that a client waits for the outcome of a command, after the broker has stored it. */
export const outcomeTimeoutMs = ms(10_000);
/** Outcomes that one client awaits at once. */
export const outcomesAwaitedMax = 10_000;
/** Default and largest number of resumes that a client holds without having handed them to its user. */
export const resumeLookaheadDefault = 64;
export const resumeLookaheadMax = 1_000;
/** One pull of a client waits this long for resumes before it is renewed. */
export const resumePullMs = ms(30_000);
/** A client gives up to connect after this time by default. */
export const connectTimeoutMs = ms(10_000);

// --- Operator --------------------------------------------------------------------------------------------------

/** A broker loss shorter than this flips no condition. */
export const brokerLossGraceMs = ms(30_000);
/** Time for which a new resume consumer is created paused; it opens by itself when no operator extends it. */
export const resumePauseMs = ms(600_000);
/** Reconciles of different resources at once. */
export const reconcilesInFlightMax = 4;
/** Keys waiting in the operator's queue. */
export const reconcileQueueSizeMax = 100_000;
/** First and longest delay before a failed reconcile is tried again. */
export const reconcileBackoffMsMin = ms(250);
export const reconcileBackoffMsMax = ms(60_000);
/** A reconcile of an unchanged resource happens at least this often (with jitter). */
export const resyncIntervalMs = ms(60_000);
/** The operator looks again after this time at something that is under way and may not tell of its end. */
export const lookAgainMs = ms(5_000);
/** A Secret that was missing is looked for after this time: the operator has no right to watch Secrets. */
export const secretLookAgainMs = ms(15_000);
/** Wakes that have fired are waited for this long before SCHEDULES is made anew. */
export const migrationDrainMsMax = ms(60_000);
/** A deletion that cannot reach the streams waits for this long; then they stay. */
export const deletionPatienceMs = ms(120_000);
/** Two looks at a stream that seems to have lost its end are at least this far apart. */
export const rewindConfirmMs = ms(2_000);
/** Leader election: a lease not seen to change for this long is free. */
export const leaderLeaseMs = ms(15_000);
/** Leader election: a leader that did not renew for this long stops. */
export const leaderRenewDeadlineMs = ms(10_000);
/** Leader election: renewals happen this often. */
export const leaderRetryMs = ms(2_000);
// --- Local mode ------------------------------------------------------------------------------------------------

/** How often the resource's file and the files of its secrets are looked at. */
export const filePollIntervalMs = ms(300);
/** Largest resource file, in bytes. */
export const resourceFileBytesMax = 1024 * 1024;
/** How often a starting child process is asked whether it is ready, and a ready one whether it still is. */
export const childProbeIntervalMs = ms(100);
export const childRecheckIntervalMs = ms(1_000);
/** Time to wait for a child's answer to one such question. */
export const childProbeTimeoutMs = ms(2_000);
/** A ready child that fails this many questions in a row is not ready any more. */
export const childProbeFailureCountMax = 3;
/** First and longest delay before a child process that ended by itself is started again. */
export const childRestartMsMin = ms(500);
export const childRestartMsMax = ms(60_000);
/** A child that was ready for this long has no failures to its name any more. */
export const childSettledMs = ms(30_000);
/** Time that an embedded NATS server has to become healthy, and to stop. */
export const natsStartTimeoutMs = ms(60_000);
export const natsStopTimeoutMs = ms(20_000);
/** One log file of a child process; one older file is kept beside it. */
export const childLogBytesMax = 8 * 1024 * 1024;

/** Objects per page of a list. */
export const listPageSize = 500;
/** Time to wait for the API server's answer to one request. */
export const clusterCallTimeoutMs = ms(10_000);
/** An API server that asks for patience gets at most this much. */
export const retryAfterMsMax = ms(300_000);
/** A watch ends and begins anew after a random time within these bounds, so that no server keeps all of them. */
export const watchMsMin = ms(300_000);
export const watchMsMax = ms(600_000);
/** A watch without a byte for this long is dead: the API server sends a bookmark about every minute. */
export const watchSilenceMsMax = ms(150_000);
/** A watch that ends sooner than this and brought nothing counts as a failure. */
export const watchHealthyMsMin = ms(1_000);
/** A watch that did not even try anything for this long hangs: the process should be restarted. */
export const watchStalledMsMax = ms(900_000);
/** Largest event of a watch, in bytes; the API server stores objects of up to about 1.5 MiB. */
export const watchEventBytesMax = 8 * 1024 * 1024;
/** Everything is listed again this often, in case a watch lost something. */
export const relistIntervalMs = ms(1_800_000);
/** First and longest delay before a failed list or watch is tried again. */
export const reflectorBackoffMsMin = ms(500);
export const reflectorBackoffMsMax = ms(30_000);
/** After this many failures in a row a watch no longer resumes where it stopped: everything is listed again. */
export const watchResumesMax = 3;
/** Kinds of events remembered, to count repeats together. */
export const eventsRememberedMax = 2_048;
/** A repeat within this time is counted on the event that exists. */
export const eventSeriesMs = ms(600_000);
/** Events about one resource within `eventSeriesMs`; more are dropped. */
export const eventsPerResourceMax = 30;
/** Longest note of an event: a bound of the API, which counts bytes. */
export const eventNoteBytesMax = 1_024;

assert(atomicBatchSizeMax < 1_000, "atomic batches below the broker's limit");
assert(multiGetSizeMax <= 1_024, "multi-gets within the broker's limit");
assert(4 * pullBufferBytesMax + multiGetBytesMax < brokerPendingBytesMax, "three sources, a walk and a read at once do not get a client cut off");
assert(leaderReadsInFlightMax * payloadBytesMax * 1.5 < brokerPendingBytesMax, "nor do reads of the leader, whose replies are base64");
assert(ackWaitMs >= 3 * ackExtendIntervalMs, "an acknowledgement wait survives two missed extensions");
assert(ackWaitMs >= 4 * wakeLeadMs, "an acknowledgement wait of several leads");
assert(custodyTrustMs >= 3 * pullHeartbeatMs, "a consumer is looked for several times before trust ends");
assert(pullStallMsMax >= 3 * pullHeartbeatMs, "a consumer is looked at several times before it counts as stalled");
assert(custodyTrustMs < ackWaitMs, "trust ends before the broker delivers to somebody else");
assert(publishTimeoutMs < ackWaitMs, "a publish settles within the acknowledgement wait");
assert(leaderRenewDeadlineMs < leaderLeaseMs, "a leader stops before its lease is free");
assert(leaderRetryMs * 2 < leaderRenewDeadlineMs, "two renewals fit before the deadline");
assert(admissionUsageAgeMsMax > admissionPollMsMax + apiTimeoutMs, "one slow look does not close admission");
assert(feedbackTimeoutMsMin > 2 * duplicateWindowMs, "the first resume's message id is forgotten before it is published again");
assert(archiveAgeMsMin > 2 * Math.max(stateMarkerTtlMs, duplicateWindowMs), "nothing of an ended timer's last writes is on its way when it is collected");
assert(dedupeMsMin > stateMarkerTtlMs + duplicateWindowMs + archiveMarkerTtlMs, "markers and message ids of a timer are gone before its lineage is a new one");
assert(orphanAgeMs > archiveAgeMsMin, "an orphan is older than what may still be finished");
assert(stateMarkerTtlMs > 4 * decisionAgeMsMax, "a claim outlives every decision that was made before it");
assert(sweepProbeSizeMax <= multiGetSizeMax, "one request asks for a whole portion");
assert(sweepLeaseMs > 3 * sweepTickMs, "a lease outlives several tries of others");
assert(sweepRepublishCountMax <= sweepSuspectCountMax, "only what was looked at twice is published again");
assert(newerInputRecheckMs < ackWaitMs, "a recheck fits in the acknowledgement wait");
assert(workerInHandBytesMax >= (workerBatchesInFlightMax + 1) * workerBatchBytesMax, "the next batch is at hand when one ends");
assert(wakeEarlyMsMax > 4 * wakeLeadMs, "a wake that comes by its lead is held");
assert(wakeEarlyMsMax < ackWaitMs, "what is held for being early is held for less than an acknowledgement wait");
assert(workerBatchMsMax > loopStallMsMax, "a batch may take longer than a round");
assert(workerBatchSizeMax <= atomicBatchSizeMax, "a worker batch fits one atomic batch");
assert(watchSilenceMsMax < watchMsMin, "a silent watch is noticed before it ends");
assert(watchStalledMsMax > watchSilenceMsMax + retryAfterMsMax + 2 * clusterCallTimeoutMs, "a watch that only waits does not count as stalled");
assert(clusterCallTimeoutMs <= leaderRenewDeadlineMs, "a renewal is answered or given up before the deadline");
