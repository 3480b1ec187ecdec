// Deliberate faults: the mistakes that the suite exists to catch, each as an edit of the code.

/** One mistake. The simulation looks for it, unless a test on real servers does: the model stands in for nats/core. */
export type Fault = { readonly name: string; readonly edits: readonly Edit[]; readonly catcher?: Catcher };
/** A test file, and the beginning of a test's name in it. */
export type Catcher = { readonly file: string; readonly test: string };
/** `from` occurs exactly once in the file. */
export type Edit = { readonly path: string; readonly from: string; readonly to: string };

const stages = "src/worker/stages.ts";
const feedback = "src/timer/decide-feedback.ts";
const start = "src/timer/decide-start.ts";
const wake = "src/timer/decide-wake.ts";
const record = "src/timer/record.ts";
const sweep = "src/worker/sweep-decide.ts";
const collection = "src/worker/retention-actions.ts";

function fault(name: string, path: string, edit: readonly [from: string, to: string]): Fault {
  return { name, edits: [{ path, from: edit[0], to: edit[1] }] };
}

/** All of them. */
export const FAULTS: readonly Fault[] = [
  fault("state is written before its snapshot", stages, ["  [\"snapshot\", writeSnapshots],\n  [\"state\", writeState],\n", "  [\"state\", writeState],\n  [\"snapshot\", writeSnapshots],\n"]),
  fault("state is removed before the archive", stages, ["  [\"archive\", archive],\n  [\"unschedule\", disarm],\n  [\"remove\", removeState],\n", "  [\"remove\", removeState],\n  [\"archive\", archive],\n  [\"unschedule\", disarm],\n"]),
  fault("a resume is published before its record", stages, ["  [\"state\", writeState],\n  [\"schedule\", writeSchedules],\n  [\"resume\", publishResumes],\n", "  [\"resume\", publishResumes],\n  [\"state\", writeState],\n  [\"schedule\", writeSchedules],\n"]),
  fault("a lost reply counts as stored", "src/worker/write-job.ts", ["  if (outcome.kind === \"stored\") return;\n", "  if (outcome.kind === \"stored\" || outcome.kind === \"unknown\") return;\n"]),
  fault("an old schedule is taken for the new generation's", stages, ["    if (inputAge(look.schedule, record) !== \"older\") return;\n", "    if (inputAge(look.schedule, record) !== \"newer\") return;\n"]),
  fault("schedules are aimed behind the due time", stages, ["dueAtMs - wakeLeadMs", "dueAtMs + wakeLeadMs"]),
  {
    name: "the fence is not compared",
    edits: [
      { path: record, from: " || input.fence < at.fence", to: "" },
      { path: record, from: "input.generation === at.generation && input.fence === at.fence", to: "input.generation === at.generation" },
    ],
  },
  {
    name: "nobody asks whether it is too early",
    edits: [
      { path: wake, from: "  if (brokerNowMs < record.dueAtMs) return isFarTooEarly(record, brokerNowMs) ? armAgain(view, record) : { kind: \"hold\", dueAtMs: record.dueAtMs };\n", to: "" },
      { path: "src/worker/due.ts", from: "  if (remainingMs <= 0) return 0;\n", to: "  if (remainingMs <= 1_000) return 0;\n" },
    ],
  },
  fault("the worker's wall clock says what is due", "src/nats/broker-clock.ts", ["    return best === undefined ? undefined : (Math.floor(best) as EpochMs);\n", "    return best === undefined ? undefined : this.#clock.nowMs();\n"]),
  fault("the receipt is forgotten", feedback, ["  if (isReceipt(known.receipt, feedback)) return repeat(view, known);\n", ""]),
  fault("a second copy of feedback finishes nothing", feedback, ["view.record === undefined || known.phase === \"elapsed\" ? [] : followingWrites(known)", "[]"]),
  fault("a retry keeps the generation", feedback, ["generation: known.generation + 1", "generation: known.generation"]),
  fault("the retry limit is off by one", feedback, ["known.generation >= known.maxRetries", "known.generation > known.maxRetries"]),
  fault("an ended timer keeps its fence", feedback, ["    fence: known.fence + 1, receipt: receiptOf(feedback), endedAtMs", "    fence: known.fence, receipt: receiptOf(feedback), endedAtMs"]),
  fault("a retry waits from the last due time on", feedback, ["later(feedback.receivedAtMs, retryDelayMs)", "later(known.dueAtMs, retryDelayMs)"]),
  fault("complete ends a timer that still waits", feedback, ["  if (known.phase === \"waiting\" && feedback.verb !== \"fail\") return concludeTwice(view, \"not_elapsed\", known);\n", ""]),
  fault("the lineage is not compared", feedback, ["!sameLineage(known.lineage, feedback.lineage) || ", ""]),
  fault("a reject on a stale read", feedback, ["  if (!isAtLeast(view.basis, \"leader_again\")) return { kind: \"unsure\", needs: \"leader_again\" };\n", ""]),
  fault("a lineage is refused on a stale read", feedback, ["isAtLeast(view.basis, \"leader\") ? reject(\"lineage_mismatch\", known) : { kind: \"unsure\", needs: \"leader\" }", "reject(\"lineage_mismatch\", known)"]),
  fault("a snapshot that is there counts as a duplicate", start, ["  return create(start, []);\n", "  return { kind: \"ignore\", reason: \"ended\" };\n"]),
  fault("a second copy of a start finishes nothing", start, ["view.record === undefined || known.phase === \"elapsed\" ? [] : followingWrites(known)", "[]"]),
  fault("another start of the timer is not told apart", start, ["  if (known.snapshotHash !== start.snapshotHash) {\n", "  if (known.snapshotHash === undefined) {\n"]),
  fault("a wake is ignored on a stale read", wake, ["isAtLeast(view.basis, \"leader_again\") ? { kind: \"ignore\", reason: \"absent\" }", "isAtLeast(view.basis, \"replica\") ? { kind: \"ignore\", reason: \"absent\" }"]),
  fault("a wake that comes again does not repeat the resume", wake, ["repeatResume(view, record);\n    default", "{ kind: \"ignore\", reason: \"older\" };\n    default"]),
  fault("an elapsed timer is not resumed", "src/timer/writes.ts", ["      return [\"resume\"];\n", "      return [];\n"]),
  fault("snapshots are overwritten", "src/nats/snapshot-store.ts", ["        expectedLastSubjectSequence: 0,\n", ""]),
  fault("records are written without compare-and-set", "src/nats/state-store.ts", ["body: encodeRecord(record), expectedLastSubjectSequence: expected ?? 0,", "body: encodeRecord(record),"]),
  fault("schedules carry a message id", "src/nats/schedule-store.ts", ["        headers: armedHeaders(item),\n", "        headers: armedHeaders(item),\n        messageId: item.key.ref,\n"]),
  fault("a resume has another body", "src/nats/resume-outlet.ts", ["        body,\n", "        body: new Uint8Array(0),\n"]),
  fault("a message that could not be settled is acknowledged", "src/worker/settle.ts", ["  item.delivery.nak(delayMs as DurationMs);\n", "  item.delivery.ack();\n"]),
  fault("garbage collection in the wrong order", collection, ["  putTombstones,\n  removeArchives,\n", "  removeArchives,\n  putTombstones,\n"]),
  fault("a tombstone expires while the archive is there", collection, ["grave: { tombstone: tombstoneOf(burial.record) }, expected: burial.at", "grave: { tombstone: tombstoneOf(burial.record), expiresInMs: 20_000 as never }, expected: burial.at"]),
  fault("an interrupted collection is not carried on", "src/worker/retention-decide.ts", ["return found.grave.expiresInMs === undefined ? { kind: \"finish\", grave: found.grave } : undefined;", "return undefined;"]),
  fault("a start takes no notice of a tombstone", start, ["  if (view.tombstone !== undefined) return meetTombstone(view.tombstone, start);\n", ""]),
  fault("another start of a collected timer is not told apart", start, ["  if (tombstone.snapshotHash !== start.snapshotHash) {\n", "  if (tombstone.snapshotHash === undefined) {\n"]),
  fault("the sweep arms beside a wake", sweep, ["  if (wake !== undefined && inputAge(wake, record) !== \"older\") return { kind: \"leave\" };\n", ""]),
  fault("the sweep does not arm what was lost", sweep, ["  if (schedule === undefined) return { kind: \"arm\" };\n", "  if (schedule === undefined) return { kind: \"leave\" };\n"]),
  fault("the sweep forgets resumes whose wake was lost", sweep, ["  if (isOwed(record, revision, view)) return { kind: \"resume\" };\n", ""]),
  {
    name: "the sweep takes a schedule for the memory of an owed resume",
    edits: [{ path: sweep, from: "  if (wakeAge !== \"older\" || scheduleAge === \"newer\") return", to: "  if (wakeAge !== \"older\" || scheduleAge !== \"older\") return" }],
    // One in ten thousand schedules shows it, and another one after each change of the code.
    catcher: { file: "test/worker/sweep-decide.test.ts", test: "schedule that led" },
  },
  fault("the sweep trusts schedules that do not fire", sweep, ["      return isPassedOver(schedule, view) ? { kind: \"suspect\", sequence: schedule.sequence } : { kind: \"leave\" };\n", "      return { kind: \"leave\" };\n"]),
  fault("a time-out does not wait for its time", "src/timer/decide-timeout.ts", ["later(record.elapsedAtMs, timeoutMs) <= brokerNowMs", "record.elapsedAtMs <= brokerNowMs"]),
  fault("a timer that nobody answers is resumed for ever", "src/timer/decide-timeout.ts", ["      if (record.resumedAgainAtMs !== undefined) return { kind: \"leave\" };\n", ""]),
  fault("starts are taken although there is no room", "src/worker/admission-decide.ts", ["  const isFull = percent >= (previous.isFull ? limits.reopenPercent : limits.closePercent);\n", "  const isFull = percent >= 100 * (previous.isFull ? limits.reopenPercent : limits.closePercent);\n"]),
  {
    name: "the sweep looks ten times as often as it should",
    edits: [
      { path: "src/worker/sweep.ts", from: "this.#plan(\"interval\", settings.intervalMs);", to: "this.#plan(\"interval\", settings.intervalMs / 10);" },
      { path: "src/worker/sweep.ts", from: "(reason === \"interval\" ? Math.max(0, nowMs - settings.intervalMs) : nowMs)", to: "nowMs" },
    ],
  },
  {
    ...fault("an ack across a reconnect", "src/nats/core/session.ts", ["    if (this.ended.aborted || this.#connection.isClosed()) return false;\n", "    if (this.#connection.isClosed()) return false;\n"]),
    catcher: { file: "test/conformance/recommended-single.int.test.ts", test: "leaves what it acknowledged" },
  },
  {
    ...fault("an ack to a consumer that was made anew", "src/nats/core/custody.ts", ["    if (this.#isRevoked || this.#isDoubted) return false;\n", ""]),
    catcher: { file: "test/nats/core/custody.test.ts", test: "" },
  },
];
