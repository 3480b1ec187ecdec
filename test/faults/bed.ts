/**
 * What every fault starts from: a world of real servers, a ledger of what is sent to it, a flow that answers resumes, and the account at the
 * end. Workers are processes of their own.
 */
import type { CommandReceipt } from "../../src/client/client.ts";
import type { FeedbackTarget } from "../../src/client/feedback.ts";
import type { ResumeDelivery } from "../../src/client/resumes.ts";
import type { StartRequest } from "../../src/client/start.ts";
import { consumerNames, streamNames } from "../../src/protocol/names.ts";
import { workerConfigVariable } from "../../src/resource/names.ts";
import { workerConfigText } from "../../src/resource/worker-config.ts";
import { systemSha256 } from "../../src/system/sha256.ts";
import { timerKey } from "../../src/timer/identity.ts";
import type { FeedbackVerb } from "../../src/timer/record.ts";
import type { ConsumerState } from "../../src/nats/core/jetstream.ts";
import { openWorld, request, told, until, type World, type WorkerProcess, type WorldOptions } from "../worker/world.ts";
import { accounted, type AccountCounts } from "./account.ts";
import { Ledger } from "./ledger.ts";

/** A flow's owner at work. */
export type Flow = {
  /**
   * Codes of feedback that was rejected, with the timer. A retry that was answered `stale` counts only if it had no effect: its
   * outcome may be that of a second delivery, when the first one's was lost with a connection, and its timer has moved on since.
   */
  readonly rejected: readonly string[];
  stop(): Promise<void>;
};

/** What a flow does with a resume: asks for another wait so often, then completes the timer or leaves it open. */
export type FlowPlan = { readonly retries: number; readonly ending: "complete" | "open" };

/** A world with its books. */
export type Bed = AsyncDisposable & {
  readonly world: World;
  readonly ledger: Ledger;
  /** Starts timers and resolves when the broker has all of them; `taken` waits for a worker's outcome too. */
  start(name: string, options: { readonly count: number; readonly taken?: boolean } & Partial<StartRequest>): Promise<void>;
  /** Takes resumes and answers them until it is stopped. */
  openFlow(plan: FlowPlan): Flow;
  /** A worker that reaches its broker at this address. */
  spawnWorkerAt(url: string): Promise<WorkerProcess>;
  wakeConsumer(): Promise<ConsumerState>;
  /** Waits until all is settled and accounts for every timer; throws with what is wrong. */
  account(timeoutMs?: number): Promise<AccountCounts>;
};

/** The acknowledgement wait of the workers' consumers here: long enough for a busy machine, short enough to wait for. */
export const ackWaitMs = 3_000;

/** Opens the bed; whoever opens it disposes of it. */
export async function openBed(options: WorldOptions = {}): Promise<Bed> {
  const world = await openWorld({ ackWaitMs, spec: { sweep: { intervalSeconds: 10, graceSeconds: 1 } }, ...options });
  const ledger = new Ledger();
  const ending = new AbortController();
  const flows: Flow[] = [];
  return {
    world, ledger,
    start: async (name, { count, taken, ...over }) => {
      const all = Array.from({ length: count }, (_, index) => ledger.start(world.client, request(`${name}-${String(index)}`, over), { awaitOutcome: taken ?? false, signal: ending.signal }));
      await Promise.all(all);
    },
    openFlow: (plan) => {
      const flow = openFlow({ world, ledger }, plan);
      flows.push(flow);
      return flow;
    },
    spawnWorkerAt: (url) => world.spawnWorker({ env: { [workerConfigVariable]: workerConfigText({ ...world.config, nats: { ...world.config.nats, servers: [url] } }) } }),
    wakeConsumer: async () => told(await world.broker.jetStream.consumerState(streamNames.schedules, consumerNames.wake)),
    account: async (timeoutMs) => accounted(world.servers.urls, ledger, timeoutMs === undefined ? {} : { timeoutMs }),
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await Promise.all(flows.map((flow) => flow.stop()));
      await world[Symbol.asyncDispose]();
    },
  };
}

/** Polls like `until`, and takes a broker that does not answer for one that has not got there yet. */
export function eventually(what: string, check: () => Promise<boolean> | boolean, timeoutMs = 90_000): Promise<true> {
  const attempt = async () => check();
  return until(what, () => attempt().then((isSo) => (isSo ? true as const : undefined), () => undefined), timeoutMs);
}

function openFlow({ world, ledger }: { readonly world: World; readonly ledger: Ledger }, plan: FlowPlan): Flow {
  const rejections: { readonly text: string; readonly staleRetry?: FeedbackTarget }[] = [];
  const hadEffect = ({ lineage, generation }: FeedbackTarget): boolean => {
    const { ref } = timerKey(lineage, systemSha256);
    return ledger.resumes.some((resume) => resume.ref === ref && resume.generation > generation);
  };
  const stopping = new AbortController();
  const answers = new Set<Promise<void>>();
  const handle = async (delivery: ResumeDelivery): Promise<void> => {
    const { resume } = delivery;
    ledger.resumed(resume, delivery.publishedAtMs);
    const verb = resume.generation < plan.retries ? "retry" : "complete";
    const isAnswered = (verb === "complete" && plan.ending === "open") || (await giveFeedback(verb, resume, delivery.deliveryCount > 1));
    if (isAnswered) delivery.ack();
  };
  const note = (verb: FeedbackVerb, target: FeedbackTarget, { receipt, isRepeated }: { readonly receipt: CommandReceipt; readonly isRepeated: boolean }): void => {
    const { outcome } = receipt;
    if (outcome?.kind !== "rejected") return;
    const isStale = outcome.code === "stale";
    // The client, too, sends again what was not acknowledged.
    if (isStale && (isRepeated || receipt.duplicate || receipt.resent)) return;
    rejections.push({ text: `${outcome.code} ${verb} ${target.lineage.execution} generation ${String(target.generation)}`, ...(isStale && verb === "retry" ? { staleRetry: target } : {}) });
  };
  const giveFeedback = async (verb: Extract<FeedbackVerb, "retry" | "complete">, target: FeedbackTarget, isSecondDelivery: boolean): Promise<boolean> => {
    for (let isRepeated = isSecondDelivery; !stopping.signal.aborted; isRepeated = true) {
      const receipt = await world.client[verb](target, { outcomeTimeoutMs: 15_000 }).catch(() => undefined);
      const outcome = receipt?.outcome;
      if (receipt !== undefined) note(verb, target, { receipt, isRepeated });
      ledger.answered(verb, target, outcome);
      if (outcome !== undefined && outcome.kind !== "unknown") return true;
    }
    return false;
  };
  const running = (async () => {
    for await (const delivery of world.client.resumes({ lookahead: 100, signal: stopping.signal })) {
      const answer = handle(delivery).finally(() => answers.delete(answer));
      answers.add(answer);
    }
    await Promise.all(answers);
  })();
  return {
    get rejected() { return rejections.filter(({ staleRetry }) => staleRetry === undefined || !hadEffect(staleRetry)).map(({ text }) => text); },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
