// The disturbances of a chaos run, from a seed: hands that act side by side, two on workers, one on servers, two on connections.
//
// S1 At most one of three servers is away at a time, but for a rare crash of all, which start again at once: no quorum is lost for ever.
// S2 When the storm ends, everything that it stopped runs again and every connection passes.
// S3 The seed gives what is done to whom and when; what the machine makes of it differs from run to run.

import type { Random } from "../../src/base/random.ts";
import type { DurationMs } from "../../src/base/units.ts";
import { streamNames } from "../../src/protocol/names.ts";
import { systemClock } from "../../src/system/clock.ts";
import { leaderOf, type NatsServer } from "../../test/servers.ts";
import type { Bed } from "./bed.ts";
import type { WorkerSlot } from "./workers.ts";

/** Something that was done to the system, with the time that it lasted. */
export type Disturbance = { readonly kind: DisturbanceKind; readonly target: string; readonly fromMs: number; readonly untilMs: number };

/** What can be done. */
export type DisturbanceKind = (typeof disturbanceKinds)[number];

/** Each kind, in the order of the report. */
export const disturbanceKinds = [
  "worker killed", "worker stopped", "worker asked to end",
  "server killed", "leader killed", "server stopped", "leader stopped", "server asked to end", "all servers killed",
  "connection cut", "connection cut again and again", "connection slowed", "connection held back", "connection half-open",
] as const;

export type StormOptions = {
  readonly bed: Bed;
  readonly random: () => Random;
  /** Sets the rhythm: a short storm must have some of everything. */
  readonly durationMs: number;
  /** Stops of workers last longer than this. */
  readonly ackWaitMs: number;
  /** Ends the storm. */
  readonly signal: AbortSignal;
};

type Hand = StormOptions & { readonly die: Random; readonly done: Disturbance[] };

/** Disturbs until the signal aborts, then lets everything run. */
export async function storm(options: StormOptions): Promise<readonly Disturbance[]> {
  const done: Disturbance[] = [];
  const hand = (): Hand => ({ ...options, die: options.random(), done });
  const { bed } = options;
  const pace = Math.min(1, options.durationMs / 60_000);
  await Promise.all([
    repeat(hand(), { fromMs: 1_000 * pace, toMs: 5_000 * pace }, disturbWorker),
    repeat(hand(), { fromMs: 1_000 * pace, toMs: 5_000 * pace }, disturbWorker),
    repeat(hand(), { fromMs: 3_000 * pace, toMs: 10_000 * pace }, bed.servers.servers.length === 1 ? disturbServer : disturbCluster),
    repeat(hand(), { fromMs: 1_000 * pace, toMs: 4_000 * pace }, disturbConnection),
    repeat(hand(), { fromMs: 1_000 * pace, toMs: 4_000 * pace }, disturbConnection),
  ]);
  await calm(bed);
  return done;
}

/** S2. */
async function calm(bed: Bed): Promise<void> {
  for (const proxy of bed.connections.flatMap(({ proxies }) => proxies)) proxy.delay(0);
  for (const worker of bed.workers) worker.signal("SIGCONT");
  for (const server of bed.servers.servers) {
    server.resume();
    await server.start();
  }
}

type Pause = { readonly fromMs: number; readonly toMs: number };

async function repeat(hand: Hand, pause: Pause, act: (hand: Hand) => Promise<void>): Promise<void> {
  for (;;) {
    await wait(hand, between(hand.die, pause.fromMs, pause.toMs));
    if (hand.signal.aborted) return;
    await act(hand);
  }
}

async function disturbWorker(hand: Hand): Promise<void> {
  const { die, bed } = hand;
  const worker = oneOf(die, bed.workers);
  const chance = die.fraction();
  if (chance < 0.45) {
    await lasting(hand, { kind: "worker killed", target: worker.name }, () => replaced(hand, worker, "SIGKILL"));
  } else if (chance < 0.7) {
    await lasting(hand, { kind: "worker asked to end", target: worker.name }, () => replaced(hand, worker, "SIGTERM"));
  } else {
    await lasting(hand, { kind: "worker stopped", target: worker.name }, async () => {
      worker.signal("SIGSTOP");
      // Its messages are delivered to others, which finish them; then it goes on where it was.
      await wait(hand, hand.ackWaitMs + between(die, 500, 3_000));
      worker.signal("SIGCONT");
    });
  }
}

/** Until the next process is ready, mostly: on a busy machine that takes its time, and workers that never began would never be done. */
async function replaced(hand: Hand, worker: WorkerSlot, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const isImpatient = hand.die.fraction() < 0.15;
  const before = worker.startCount;
  const endAtMs = Date.now() + replaceMsMax;
  worker.signal(signal);
  while (!isImpatient && !hand.signal.aborted && Date.now() < endAtMs && !(worker.startCount > before && worker.isReady)) await wait(hand, 100);
}

const replaceMsMax = 30_000;

async function disturbServer(hand: Hand): Promise<void> {
  const server = oneOf(hand.die, hand.bed.servers.servers);
  const chance = hand.die.fraction();
  if (chance < 0.6) await down(hand, "server killed", server);
  else if (chance < 0.75) await down(hand, "server asked to end", server);
  else await still(hand, "server stopped", server);
}

async function disturbCluster(hand: Hand): Promise<void> {
  const { die, bed } = hand;
  const { servers } = bed.servers;
  const chance = die.fraction();
  if (chance < 0.3) return down(hand, "server killed", oneOf(die, servers));
  if (chance < 0.5) return down(hand, "leader killed", await leader(hand));
  if (chance < 0.65) return still(hand, "server stopped", oneOf(die, servers));
  if (chance < 0.8) return still(hand, "leader stopped", await leader(hand));
  if (chance < 0.93) return down(hand, "server asked to end", oneOf(die, servers));
  return lasting(hand, { kind: "all servers killed", target: "all" }, () => bed.servers.crash());
}

/** The server that leads one of the streams; any of them when the servers do not say. */
async function leader({ die, bed }: Hand): Promise<NatsServer> {
  const stream = oneOf(die, Object.values(streamNames));
  return leaderOf(bed.servers, stream).catch(() => oneOf(die, bed.servers.servers));
}

async function down(hand: Hand, kind: DisturbanceKind, server: NatsServer): Promise<void> {
  await lasting(hand, { kind, target: server.name }, async () => {
    await (kind === "server asked to end" ? server.stop() : server.kill());
    await wait(hand, between(hand.die, 50, 3_000));
    await server.start();
  });
}

async function still(hand: Hand, kind: DisturbanceKind, server: NatsServer): Promise<void> {
  await lasting(hand, { kind, target: server.name }, async () => {
    server.pause();
    await wait(hand, between(hand.die, 500, 8_000));
    server.resume();
  });
}

async function disturbConnection(hand: Hand): Promise<void> {
  const { die, bed } = hand;
  const { name, proxies } = oneOf(die, bed.connections);
  const cut = () => { for (const proxy of proxies) proxy.cut(); };
  const slowed = (delayMs: number, forMs: number) => async () => {
    for (const proxy of proxies) proxy.delay(delayMs);
    await wait(hand, forMs);
    for (const proxy of proxies) proxy.delay(0);
  };
  const chance = die.fraction();
  if (chance < 0.3) return lasting(hand, { kind: "connection cut", target: name }, async () => { cut(); });
  if (chance < 0.4) return lasting(hand, { kind: "connection cut again and again", target: name }, () => cutRepeatedly(hand, cut));
  if (chance < 0.6) return lasting(hand, { kind: "connection slowed", target: name }, slowed(between(die, 20, 400), between(die, 1_000, 6_000)));
  // Everything that was held back arrives, late.
  if (chance < 0.75) return lasting(hand, { kind: "connection held back", target: name }, slowed(between(die, 2_000, 8_000), between(die, 1_000, 6_000)));
  // A dead direction: commands are stored whose answers never come, or acknowledgements never arrive.
  const direction = die.fraction() < 0.7 ? "replies" : "requests";
  return lasting(hand, { kind: "connection half-open", target: name }, async () => {
    for (const proxy of proxies) proxy.halfOpen([direction]);
    await wait(hand, between(die, 1_000, 12_000));
    cut();
  });
}

async function cutRepeatedly(hand: Hand, cut: () => void): Promise<void> {
  const endAtMs = Date.now() + between(hand.die, 500, 4_000);
  while (Date.now() < endAtMs && !hand.signal.aborted) {
    cut();
    await wait(hand, 100);
  }
}

async function lasting(hand: Hand, { kind, target }: Pick<Disturbance, "kind" | "target">, act: () => Promise<void>): Promise<void> {
  const fromMs = Date.now();
  await act();
  hand.done.push({ kind, target, fromMs, untilMs: Date.now() });
}

/** Ends with the storm, too. */
function wait({ signal }: Hand, durationMs: number): Promise<void> {
  return systemClock.sleep(durationMs as DurationMs, signal);
}

function between(die: Random, from: number, to: number): number {
  return from + die.fraction() * (to - from);
}

function oneOf<T>(die: Random, choices: readonly T[]): T {
  const choice = choices[Math.floor(die.fraction() * choices.length)];
  if (choice === undefined) throw new Error("a choice among some");
  return choice;
}
