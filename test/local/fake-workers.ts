// Worker processes that a test starts, makes ready and ends by hand.

import { Failure } from "../../src/base/failure.ts";
import type { ChildExit } from "../../src/local/child-process.ts";
import type { RunningWorker, WorkerLauncher } from "../../src/local/worker-slot.ts";

export class FakeWorker implements RunningWorker {
  readonly pid: number;
  readonly slot: string;
  readonly exited: Promise<ChildExit>;
  isAnswering = false;
  /** Whether SIGTERM ends it. */
  isPolite = true;
  readonly signals: string[] = [];
  #end: (exit: ChildExit) => void = () => undefined;

  constructor(pid: number, slot: string) {
    this.pid = pid;
    this.slot = slot;
    this.exited = new Promise((resolve) => { this.#end = resolve; });
  }

  isReady(): Promise<boolean> {
    return Promise.resolve(this.isAnswering);
  }

  lastLine(): string {
    return "";
  }

  exit(exit: ChildExit): void {
    this.isAnswering = false;
    this.#end(exit);
  }

  terminate(): void {
    this.signals.push("SIGTERM");
    if (this.isPolite) this.exit({ code: 0, signal: null });
  }

  kill(): void {
    this.signals.push("SIGKILL");
    this.exit({ code: null, signal: "SIGKILL" });
  }
}

export class FakeLauncher implements WorkerLauncher {
  readonly started: FakeWorker[] = [];
  /** Launches that fail before one succeeds. */
  failureCount = 0;

  launch(slot: string): Promise<RunningWorker> {
    if (this.failureCount > 0) {
      this.failureCount -= 1;
      return Promise.reject(new Failure("invalid", "PROCESS_FAILED", "start worker"));
    }
    const worker = new FakeWorker(1_000 + this.started.length, slot);
    this.started.push(worker);
    return Promise.resolve(worker);
  }

  /** The process that a slot has now, or had last. */
  of(slot: string): FakeWorker {
    const worker = this.started.findLast((each) => each.slot === slot);
    if (worker === undefined) throw new Error(`slot ${slot} never started`);
    return worker;
  }
}
