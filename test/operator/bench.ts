// An operator over fakes: one pass at a time, or a controller on a stepped clock.

import { Controller } from "../../src/operator/controller.ts";
import { reconcile } from "../../src/operator/reconcile.ts";
import type { Reconciled } from "../../src/operator/reconcile.ts";
import { BrokerSessions } from "../../src/operator/sessions.ts";
import type { ResourceKey } from "../../src/operator/plan/observed.ts";
import { seededRandom } from "../../src/system/random.ts";
import { SteppedClock } from "../fakes/clock.ts";
import { FakeCluster } from "../fakes/cluster.ts";
import { FakeLog } from "../fakes/log.ts";
import { FakeBroker } from "../fakes/operator-broker.ts";
import { FakeOperatorMetrics } from "../fakes/operator-metrics.ts";
import { conditionTexts, spec } from "./plan/scenes.ts";

export const orders: ResourceKey = { namespace: "payments", name: "orders" };

export class Bench {
  readonly clock = new SteppedClock();
  readonly cluster = new FakeCluster({ connection: { servers: ["nats://fake:4222"], name: "test" } });
  readonly broker = new FakeBroker({ nowMs: () => this.clock.nowMs() });
  readonly metrics = new FakeOperatorMetrics();
  readonly log = new FakeLog();
  readonly changed: ResourceKey[] = [];
  readonly sessions = new BrokerSessions({ broker: this.broker, onChange: (key) => this.changed.push(key) });

  constructor() {
    this.cluster.put(orders, spec());
  }

  /** One pass. */
  pass(key: ResourceKey = orders): Promise<Reconciled> {
    return reconcile(this.#tools(), key, new AbortController().signal);
  }

  /** Passes until one changes nothing; the number of those that changed something. */
  async settle(key: ResourceKey = orders): Promise<number> {
    for (let count = 0; count < passCountMax; count += 1) {
      const result = await this.pass(key);
      if (result.kind === "unchanged") return count;
    }
    throw new Error(`not settled after ${String(passCountMax)} passes`);
  }

  controller(): Controller {
    const { cluster, broker, clock, metrics, log } = this;
    return new Controller({ cluster, broker, clock, random: seededRandom(1), metrics, log });
  }

  conditions(key: ResourceKey = orders): readonly string[] {
    return conditionTexts(this.cluster.status(key));
  }

  #tools(): Parameters<typeof reconcile>[0] {
    const { cluster, sessions, clock, metrics, log } = this;
    return { cluster, sessions, clock, random: seededRandom(1), metrics, log };
  }
}

const passCountMax = 12;
