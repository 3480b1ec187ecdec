// PostgreSQL as people use it by hand: a table of due instants, claimed with SKIP LOCKED, woken early by NOTIFY.

import type { OpenSystem } from "../harness.ts";
import { loadPeer } from "../peers.ts";

type Rows = { readonly rows: readonly Readonly<Record<string, unknown>>[] };
type Queryable = { query(text: string, values?: readonly unknown[]): Promise<Rows> };
type Client = Queryable & { connect(): Promise<void>; end(): Promise<void>; on(event: "notification", listener: (message: { readonly payload: string }) => void): void };
type Pg = { readonly default: { readonly Pool: new (options: object) => Queryable & { end(): Promise<void> }; readonly Client: new (options: object) => Client } };

/** Claims a hundred at a time and sleeps until the next one is due. */
export function postgres(connectionString: string): OpenSystem {
  return async (onWake) => {
    const { Pool, Client } = (await loadPeer<Pg>("pg")).default;
    const pool = new Pool({ connectionString, max: 32 });
    await pool.query("drop table if exists bench_timer; create table bench_timer(id bigint primary key, due_at timestamptz not null, is_done boolean not null default false, body text)");
    await pool.query("create index bench_timer_due on bench_timer(due_at) where not is_done");
    const [listener, claimer] = [new Client({ connectionString }), new Client({ connectionString })];
    await listener.connect();
    await claimer.connect();
    const alarm = new Alarm();
    await listener.query("listen bench_timer");
    listener.on("notification", ({ payload }) => { alarm.earlier(Number(payload)); });
    const stop = new AbortController();
    const claiming = claimUntil(stop.signal, { claimer, alarm, onWake });
    let soonestMs = Infinity;
    return {
      arm: async ({ id, dueAtMs, body }) => {
        await pool.query("insert into bench_timer(id, due_at, body) values ($1, to_timestamp($2 / 1000.0), $3) on conflict do nothing", [id, dueAtMs, body]);
        if (dueAtMs >= soonestMs) return;
        soonestMs = dueAtMs;
        await pool.query("select pg_notify('bench_timer', $1)", [String(dueAtMs)]);
      },
      close: async () => {
        stop.abort();
        await claiming;
        await Promise.all([pool.end(), listener.end(), claimer.end()]);
      },
    };
  };
}

async function claimUntil(signal: AbortSignal, { claimer, alarm, onWake }: { readonly claimer: Queryable; readonly alarm: Alarm; readonly onWake: (id: number) => void }): Promise<void> {
  while (!signal.aborted) {
    const { rows } = await claimer.query(`update bench_timer set is_done = true where id in (
      select id from bench_timer where not is_done and due_at <= clock_timestamp() order by due_at for update skip locked limit 100) returning id`);
    for (const row of rows) onWake(Number(row["id"]));
    if (rows.length === 100) continue;
    const next = await claimer.query("select extract(epoch from min(due_at)) * 1000 as at_ms from bench_timer where not is_done");
    await alarm.at(Number(next.rows[0]?.["at_ms"] ?? Infinity));
  }
}

/** Rings at an instant, at an earlier one that it is told of meanwhile, and after a second in any case. */
class Alarm {
  #atMs = Infinity;
  #ring: () => void = () => undefined;

  async at(atMs: number): Promise<void> {
    this.#atMs = atMs;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(1_000, Math.max(0, atMs - Date.now())));
      this.#ring = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  earlier(atMs: number): void {
    if (atMs < this.#atMs) this.#ring();
  }
}
