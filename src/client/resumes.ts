/**
 * The consumer of resumes: an async iterable over the durable consumer that the flow's owner shares between all of its
 * processes.
 *
 * C1 Every valid resume reaches the user at least once and stays the broker's until it is acknowledged.
 * C2 A resume that does not satisfy the contract never reaches the user: it is removed and reported.
 * C3 At most `lookahead` resumes are held without having been handed over; those are handed back when iteration ends.
 */
import { Failure } from "../base/failure.ts";
import { resumeLookaheadDefault, resumeLookaheadMax, resumePullMs } from "../base/limits.ts";
import type { Sha256 } from "../base/sha256.ts";
import type { DurationMs, EpochMs } from "../base/units.ts";
import type { Delivered, JetStream } from "../nats/core/jetstream.ts";
import { consumerNames, headerNames, streamNames } from "../protocol/names.ts";
import { readResume, type Resume } from "../protocol/resume.ts";

/**
 * A resume in hand. Act on it, give feedback, then acknowledge: a process that dies in between gets it again. Settling
 * returns false when the connection on which it came was lost; it then comes again.
 */
export type ResumeDelivery = {
  readonly resume: Resume;
  /** How often it was delivered, this time included. */
  readonly deliveryCount: number;
  /**
   * When the resume was stored, on the broker's clock, in whole milliseconds that had passed by then: it is below
   * `resume.dueAtMs` exactly when the resume was early, which never happens.
   */
  readonly publishedAtMs: EpochMs;
  /** Removes it. */
  ack(): boolean;
  /** Hands it back, to be delivered again after `delayMs`. It counts as in hand until then. */
  nak(delayMs: number): boolean;
  /** Starts its acknowledgement wait anew; for work that takes longer than that. */
  extend(): boolean;
};

/** A message on the resume subject that is none. */
export type InvalidResume = {
  /** Names the field and what it should be. */
  readonly problem: string;
  readonly subject: string;
  /** Stream sequence; the message is gone when this is reported. */
  readonly sequence: number;
  readonly contextHeader?: string;
};

/** How to consume resumes. */
export type ResumesOptions = {
  /** Resumes to hold ahead, 1 to 1,000; the acknowledgement wait of each runs while it is held. */
  readonly lookahead?: number;
  /** Told of each invalid resume, after it was removed. Must not throw. */
  readonly onInvalid?: (invalid: InvalidResume) => void;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
};

type Tools = { readonly jetStream: JetStream; readonly sha256: Sha256; readonly stopped: AbortSignal };
type Iteration = AsyncGenerator<ResumeDelivery, void, undefined>;

/** The iterations of one client, so that it can end them before it disconnects. */
export class ResumeIterations {
  readonly #tools: Tools;
  readonly #open = new Set<Iteration>();

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** Resumes as they come, until the options' signal or the client stops. Survives reconnects and broker restarts. */
  open(options: ResumesOptions): Iteration {
    const lookahead = options.lookahead ?? resumeLookaheadDefault;
    if (!Number.isInteger(lookahead) || lookahead < 1 || lookahead > resumeLookaheadMax) {
      throw new Failure("invalid", "REQUEST_INVALID", `consume resumes: lookahead must be an integer from 1 to ${String(resumeLookaheadMax)}`);
    }
    const iteration = iterate(this.#tools, { ...options, lookahead }, () => { this.#open.delete(iteration); });
    this.#open.add(iteration);
    return iteration;
  }

  /** Hands back what no user has seen. The tools' signal must have aborted, or an idle iteration waits for a resume. */
  async end(): Promise<void> {
    await Promise.all([...this.#open].map((iteration) => iteration.return()));
    this.#open.clear();
  }
}

async function* iterate(tools: Tools, options: ResumesOptions & { readonly lookahead: number }, onEnd: () => void): Iteration {
  const { lookahead } = options;
  const signal = options.signal === undefined ? tools.stopped : AbortSignal.any([options.signal, tools.stopped]);
  const source = tools.jetStream.openSource({ stream: streamNames.resumes, consumer: consumerNames.resume, lookahead });
  const held: Delivered[] = [];
  try {
    while (!signal.aborted) {
      const next = held.shift();
      if (next === undefined) held.push(...(await source.take({ max: lookahead, expiresMs: resumePullMs, signal })));
      else yield* readDelivery(next, tools.sha256, options);
    }
  } finally {
    for (const delivered of held) delivered.settle({ kind: "nak", delayMs: 0 as DurationMs });
    onEnd();
    await source.close();
  }
}

function* readDelivery(delivered: Delivered, sha256: Sha256, options: ResumesOptions): Generator<ResumeDelivery, void, undefined> {
  const read = readResume(delivered.message, sha256);
  if (read.ok) yield deliveryOf(delivered, read.resume);
  else dropInvalid(delivered, read.problem, options);
}

function deliveryOf(delivered: Delivered, resume: Resume): ResumeDelivery {
  return {
    resume,
    deliveryCount: delivered.deliveryCount,
    publishedAtMs: Number(delivered.message.timestampNs / nanosPerMs) as EpochMs,
    ack: () => delivered.settle({ kind: "ack" }),
    nak: (delayMs) => delivered.settle({ kind: "nak", delayMs: delayMs as DurationMs }),
    extend: () => delivered.settle({ kind: "extend" }),
  };
}

const nanosPerMs = 1_000_000n;

function dropInvalid(delivered: Delivered, problem: string, options: ResumesOptions): void {
  const { subject, sequence, headers } = delivered.message;
  const contextHeader = headers.get(headerNames.context);
  delivered.settle({ kind: "terminate", reason: "invalid resume" });
  options.onInvalid?.({ problem, subject, sequence, ...(contextHeader === undefined ? {} : { contextHeader }) });
}
