/** Everything that a worker needs of the broker, over one connection. */
import type { Clock } from "../base/clock.ts";
import { consumerNames, streamNames } from "../protocol/names.ts";
import type { SourceName, WorkerPorts } from "../worker/ports.ts";
import { natsArchive } from "./archive.ts";
import { NatsBrokerClock } from "./broker-clock.ts";
import { natsCapacityProbe } from "./capacity-probe.ts";
import { natsDataProbe } from "./data-probe.ts";
import { natsCollectionWalk } from "./collection-walk.ts";
import type { BrokerConnection } from "./core/jetstream.ts";
import { natsNotesStore } from "./notes-store.ts";
import { natsOutcomeOutlet } from "./outcome-outlet.ts";
import { natsRejectedStore } from "./rejected-store.ts";
import { natsResumeOutlet } from "./resume-outlet.ts";
import { natsScheduleStore } from "./schedule-store.ts";
import { natsSnapshotStore } from "./snapshot-store.ts";
import { natsSource } from "./source.ts";
import { StageWriter } from "./stage-writer.ts";
import { natsStateStore } from "./state-store.ts";
import { natsStateWalk } from "./state-walk.ts";
import { natsTopologyProbe } from "./topology-probe.ts";
import type { TopologyRules } from "./topology-probe.ts";

export type WorkerPortsOptions = {
  readonly clock: Clock;
  readonly rules: TopologyRules;
  /** Messages pulled and not yet taken, per source. */
  readonly lookahead: number;
  /** Hears of rejected commands whose context was not kept. */
  readonly onRejectedLost?: (count: number) => void;
  /** Hears of each time that a source's consumer held messages and delivered none of them; it has been asked anew. */
  readonly onStalled?: (source: SourceName) => void;
};

/** The sources begin to pull when something is first taken. Closing them is the caller's, and so is the connection. */
export function openWorkerPorts(connection: BrokerConnection, options: WorkerPortsOptions): WorkerPorts {
  const { jetStream } = connection;
  const epoch = (): number => connection.epoch();
  const writer = new StageWriter(jetStream);
  const clock = new NatsBrokerClock({ jetStream, clock: options.clock, epoch });
  const { lookahead, onStalled = ignore } = options;
  return {
    state: natsStateStore(jetStream, writer),
    snapshots: natsSnapshotStore(jetStream, writer),
    schedules: natsScheduleStore(jetStream, writer),
    resumes: natsResumeOutlet(writer),
    archive: natsArchive(jetStream, writer),
    sources: {
      start: natsSource(jetStream, { stream: streamNames.commands, consumer: consumerNames.start, lookahead }, { epoch, onStalled: () => onStalled("start") }),
      feedback: natsSource(jetStream, { stream: streamNames.feedback, consumer: consumerNames.feedback, lookahead }, { epoch, onStalled: () => onStalled("feedback") }),
      wake: natsSource(
        jetStream, { stream: streamNames.schedules, consumer: consumerNames.wake, lookahead },
        { epoch, onDelivered: (delivered) => clock.onWake(delivered), onStalled: () => onStalled("wake") },
      ),
    },
    outcomes: natsOutcomeOutlet(jetStream),
    rejected: natsRejectedStore(jetStream, { clock: options.clock, onLost: options.onRejectedLost ?? ignore }),
    clock,
    capacity: natsCapacityProbe(jetStream),
    data: natsDataProbe(jetStream, options.rules.readStamp),
    topology: natsTopologyProbe({ connection, rules: options.rules, onStream: (state) => writer.learn(state) }),
    notes: natsNotesStore(jetStream),
    walk: natsStateWalk(jetStream),
    collection: natsCollectionWalk(jetStream),
  };
}

const ignore = (): void => undefined;
