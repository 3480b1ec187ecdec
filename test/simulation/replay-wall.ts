/**
 * The year in real time: a real NATS server, the real worker program, and hours of a few milliseconds. Every record that is
 * stored is republished by the server itself, so that none is missed that the next one replaces; answers follow their
 * resumes, because a busy machine may be late, and hours are short.
 */
import type { ResumeDelivery } from "../../src/client/resumes.ts";
import { commandSubjects, headerNames, stateRecordFilter, streamNames } from "../../src/protocol/names.ts";
import { decodeRecord } from "../../src/protocol/record-codec.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { TimerRecord } from "../../src/timer/record.ts";
import { openWorld, told, until, type World } from "../worker/world.ts";
import type { ReplayReport } from "./replay.ts";
import { answerTo, livesOfTheYear, requestOf, rulesHash, type Life, type Stored } from "./year.ts";

type Diary = { readonly life: Life; readonly records: TimerRecord[]; readonly resumes: Map<number, Stored["resumes"][number]> };

/** Lives through the year on a server. */
export async function replayInWallTime(): Promise<ReplayReport> {
  await using world = await openWorld();
  const year = new WallYear(world);
  return await year.run();
}

class WallYear {
  readonly #world: World;
  readonly #diaries: ReadonlyMap<string, Diary>;
  readonly #violations: string[] = [];
  readonly #stopping = new AbortController();
  #beganAtMs = 0;

  constructor(world: World) {
    this.#world = world;
    this.#diaries = new Map(livesOfTheYear().map((life) => [life.execution, { life, records: [], resumes: new Map() }]));
  }

  async run(): Promise<ReplayReport> {
    await this.#listen();
    await this.#world.spawnWorker();
    this.#beganAtMs = Date.now();
    const consuming = this.#consume();
    const diaries = [...this.#diaries.values()];
    await Promise.all(diaries.map((diary) => this.#begin(diary)));
    await until("the end of every timer", () => (diaries.every(({ records }) => records.at(-1)?.phase === "terminal") ? true : undefined), endMsMax);
    await until("every archive record", async () => ((await this.#world.archived()).length === diaries.length ? true : undefined), endMsMax);
    const days = Math.round((Date.now() - this.#beganAtMs) / hourMs / 24);
    this.#stopping.abort();
    await consuming;
    return {
      way: "wall time", days, violations: this.#violations, hash: rulesHash(({ execution }) => this.#storedOf(execution), hourMs),
      recordCount: diaries.reduce((sum, { records }) => sum + records.length, 0), resumeCount: diaries.reduce((sum, { resumes }) => sum + resumes.size, 0),
    };
  }

  /** The server sends on what it stores, after it has stored it. */
  async #listen(): Promise<void> {
    const { admin, jetStream } = this.#world.broker;
    const { config } = told(await jetStream.streamState(streamNames.state));
    told(await admin.updateStream({ ...config, republish: { src: stateRecordFilter, dest: `${copies}.>` } }));
    jetStream.listen(`${copies}.>`, ({ body }) => {
      const decoded = decodeRecord(body);
      // The marker of a removed record has no body.
      if (decoded.ok) this.#diaryOf(decoded.record.lineage.execution)?.records.push(decoded.record);
    });
  }

  async #begin({ life }: Diary): Promise<void> {
    await this.#sleep(life.startHour * hourMs);
    await this.#world.client.start(requestOf(life, hourMs));
  }

  async #consume(): Promise<void> {
    const answers: Promise<void>[] = [];
    for await (const delivery of this.#world.client.resumes({ lookahead: 100, signal: this.#stopping.signal })) answers.push(this.#answer(delivery));
    await Promise.all(answers);
  }

  async #answer(delivery: ResumeDelivery): Promise<void> {
    const { resume } = delivery;
    const { lineage, generation, fence, snapshotHash } = resume;
    const diary = this.#diaryOf(lineage.execution);
    if (diary === undefined) return;
    if (delivery.publishedAtMs < resume.dueAtMs) this.#violations.push(`I1: ${lineage.execution} was resumed before it was due`);
    if (timerKey(lineage, systemSha256).ref !== timerKey(requestOf(diary.life, hourMs), systemSha256).ref) this.#violations.push(`I2: ${lineage.execution} was resumed with another lineage`);
    const isFirst = !diary.resumes.has(generation);
    if (isFirst) diary.resumes.set(generation, { generation, fence, body: resume.body });
    else if (diary.resumes.get(generation)?.fence !== fence) this.#violations.push(`I2: ${lineage.execution} was resumed twice in generation ${String(generation)}, differently`);
    if (isFirst) {
      await this.#sleep((diary.life.thinkHours[generation] ?? 0) * hourMs);
      await this.#send(diary.life, { lineage, generation, fence, snapshotHash });
    }
    delivery.ack();
  }

  /** Until the broker has it; its message id makes the second copy none. */
  async #send(life: Life, target: Parameters<typeof answerTo>[1]): Promise<void> {
    const { verb, contextHeader, body, messageId } = answerTo(life, target);
    await until("room for an answer", async () => {
      const [outcome] = await this.#world.broker.jetStream.publish([{ subject: commandSubjects[verb], headers: [[headerNames.context, contextHeader]], body, messageId }]);
      return outcome?.kind === "stored" ? true : undefined;
    }, endMsMax);
  }

  #storedOf(execution: string): Stored {
    const diary = this.#diaryOf(execution);
    return { records: diary?.records ?? [], resumes: [...(diary?.resumes.values() ?? [])] };
  }

  #diaryOf(execution: string): Diary | undefined {
    return this.#diaries.get(execution);
  }

  #sleep(durationMs: number): Promise<void> {
    return systemClock.sleep(durationMs as never);
  }
}

/** A whole number of milliseconds, since delays are. */
const hourMs = 3;
const copies = "replay.records";
const endMsMax = 240_000;
