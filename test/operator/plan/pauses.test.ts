import { describe, expect, it } from "vitest";
import { resumePauseMs } from "../../../src/base/limits.ts";
import type { EpochMs } from "../../../src/base/units.ts";
import type { Observed } from "../../../src/operator/plan/observed.ts";
import { statedPauseUntilMs } from "../../../src/operator/plan/pauses.ts";
import { plan } from "../../../src/operator/plan/plan.ts";
import { actionTexts, check, nowMs, paused, settled, withBroker, withConsumer, withSpec, withStatus, withStreamConfig, withWorkers } from "./scenes.ts";
import type { Row } from "./scenes.ts";

describe("resumes and admission", () => {
  const startup = (remainingMs: number): Observed => withStatus(withConsumer(settled(), "resume", paused(nowMs + remainingMs)), (status) => ({ ...status, observedGeneration: 3, resume: { consumer: "NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME", everOpened: false }, conditions: (status?.conditions ?? []).map((condition) => (condition.type === "ResumeOpen" ? { ...condition, status: "False" as const, reason: "WaitingForWorkers" } : condition)) }));
  const neverReady = (remainingMs: number): Observed => withWorkers(startup(remainingMs), { readyReplicas: 0 });
  const pauseText = "Pause consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES until";
  const openText = "Open consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES";
  const held = ["Ready False ResumePaused", "ResumeOpen False ResumePaused"];
  const workersDown = ["Ready False WorkersProgressing", "WorkersReady False WorkersProgressing", "Reconciling True WorkersProgressing"];
  const rows: readonly Row[] = [
    { name: "the first opening follows the other gates", scene: () => startup(400_000), actions: [openText], turns: ["Ready False Provisioning", "ResumeOpen False Provisioning", "Reconciling True Provisioning"], because: "every gate before it is open" },
    { name: "while a gate is closed the pause stays", scene: () => neverReady(400_000), actions: [], turns: workersDown, because: "more than half of it is left" },
    { name: "a pause that seems too long by the clock of another server is still ours", scene: () => startup(resumePauseMs + 30_000), actions: [openText], turns: ["Ready False Provisioning", "ResumeOpen False Provisioning", "Reconciling True Provisioning"], because: "clocks of servers differ" },
    { name: "a pause about to end is extended", scene: () => neverReady(200_000), actions: [`${pauseText} 2026-11-30T20:10:00.000Z`], turns: workersDown, because: "the gate is still closed" },
    { name: "a pause that ended by itself counts as opened", scene: () => withConsumer(neverReady(1), "resume", (consumer) => ({ ...consumer, isPaused: false })), actions: [], turns: [...workersDown.slice(0, 2), "ResumeOpen True Open", ...workersDown.slice(2)], because: "without an operator it opens by itself" },
    { name: "once opened, lost workers do not close it", scene: () => withWorkers(settled(), { readyReplicas: 0 }), actions: [], turns: workersDown, because: "resumes that are stored may well be delivered" },
    { name: "somebody's long pause before the first opening stays", scene: () => startup(3_600_000), actions: [], turns: held, because: "no pause of ours is that long" },
    { name: "somebody's pause after the opening is shown and stays", scene: () => withConsumer(settled(), "resume", paused(nowMs + 1_000)), actions: [], turns: held, because: "after the opening a pause is somebody's wish" },
    { name: "a pause that the spec asks for", scene: () => withSpec(settled(), { resume: { state: "Paused" } }), actions: [`${pauseText} 2200-01-01T00:00:00.000Z`], turns: held, because: "spec.resume.state is Paused" },
    { name: "a pause that the spec asks for overrides somebody's", scene: () => withConsumer(withSpec(settled(), { resume: { state: "Paused" } }), "resume", paused(nowMs + 1_000)), actions: [`${pauseText} 2200-01-01T00:00:00.000Z`], turns: held, because: "the spec's pause must not end by itself" },
    { name: "the spec's pause ends with the spec", scene: () => withConsumer(settled(), "resume", paused(statedPauseUntilMs)), actions: [openText], turns: ["Ready False Provisioning", "ResumeOpen False Provisioning", "Reconciling True Provisioning"], because: "its end tells that it was ours" },
    { name: "the spec's pause falls back to the gate before the first opening", scene: () => withConsumer(neverReady(1), "resume", paused(statedPauseUntilMs)), actions: [`${pauseText} 2026-11-30T20:10:00.000Z`], turns: workersDown, because: "it was never open" },
    { name: "a missing resume consumer is created paused when the spec says so", scene: () => withConsumer(settled({ resume: { state: "Paused" } }), "resume", undefined), actions: ["Create consumer NOTIFY_TRIGGERS_DURABLE_TIMER_RESUME on DURABLE_TIMER_RESUMES, paused until 2200-01-01T00:00:00.000Z"], turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "ResumeOpen False WaitingForTopology", "Reconciling True Provisioning", "InSync False Provisioning"], because: "not one resume may slip out" },
    { name: "closed admission pauses the start consumer", scene: () => withSpec(settled(), { admission: { state: "Closed" } }), actions: ["Pause consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS until 2200-01-01T00:00:00.000Z"], turns: ["AdmissionOpen False ClosedBySpec"], because: "an emergency stop is no rollout" },
    { name: "open admission lifts the pause that the spec set", scene: () => withConsumer(settled(), "start", paused(statedPauseUntilMs)), actions: ["Open consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS"], turns: [], because: "its end tells that it was ours" },
    { name: "somebody's pause of the start consumer is shown and stays", scene: () => withConsumer(settled(), "start", paused(nowMs + 60_000)), actions: [], turns: ["AdmissionOpen False ConsumerPaused"], because: "it is somebody's wish" },
    { name: "an emergency stop comes before a repair", scene: () => withStreamConfig(withSpec(settled(), { admission: { state: "Closed" } }), "terminals", { max_bytes: 5 }), actions: ["Pause consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS until 2200-01-01T00:00:00.000Z", "Update stream DURABLE_TIMER_TERMINALS (max_bytes)"], turns: ["Reconciling True Provisioning", "AdmissionOpen False ClosedBySpec", "InSync False Drifted"], because: "a repair that fails must not hold it up" },
    { name: "a missing start consumer is created paused when admission is closed", scene: () => withConsumer(settled({ admission: { state: "Closed" } }), "start", undefined), actions: ["Create consumer DURABLE_TIMER_COMMAND_SERVICE on DURABLE_TIMER_COMMANDS, paused until 2200-01-01T00:00:00.000Z"], turns: ["Ready False Provisioning", "TopologyReady False Provisioning", "Reconciling True Provisioning", "InSync False Provisioning"], because: "not one start may slip in" },
  ];
  it.each(rows)("$name", check);

  it("pauses by the broker's clock", () => {
    const ahead = withBroker(neverReady(200_000), (broker) => ({ ...broker, brokerTimeMs: (nowMs + 5_000) as EpochMs }));
    expect(actionTexts(plan(ahead))).toEqual([`${pauseText} 2026-11-30T20:10:05.000Z`]);
  });
});
