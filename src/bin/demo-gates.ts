// Shows the gates of a resource in their order as they open, and afterwards what happens to its processes.

import { Failure } from "../base/failure.ts";
import type { LocalNotice } from "../local/local-run.ts";
import { noticeLines } from "../local/notice-text.ts";
import { gateTypes } from "../resource/conditions.ts";

/** Prints the gates in their order as they turn true, and later what happens to workers. */
export class GateWatch {
  readonly #say: (line: string) => void;
  readonly #beganAtMs = Date.now();
  readonly #serving = Promise.withResolvers<undefined>();
  #isReady = false;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  see(notice: LocalNotice): void {
    if (notice.kind === "condition_turned") this.#seeCondition(notice.condition);
    else if (notice.kind !== "event" && notice.kind !== "file_accepted") this.#sayAll(noticeLines(notice));
  }

  async ready(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => { this.#serving.reject(new Failure("transient", "PROCESS_FAILED", `wait ${String(timeoutMs / 1_000)} s for the gates to open`)); }, timeoutMs);
    await this.#serving.promise.finally(() => { clearTimeout(timer); });
  }

  #seeCondition({ type, status, reason, message }: Extract<LocalNotice, { kind: "condition_turned" }>["condition"]): void {
    const isGate = type === "Ready" || gateTypes.some((gate) => gate === type);
    if (isGate && status === "True" && !this.#isReady) this.#sayAll([`gate ${type.padEnd(17)} open  ${reason}`]);
    if (type === "Stalled" && status === "True") this.#sayAll([`stalled: ${reason} ${message}`]);
    if (type !== "Ready" || status !== "True") return;
    this.#isReady = true;
    this.#serving.resolve(undefined);
  }

  #sayAll(lines: readonly string[]): void {
    const seconds = ((Date.now() - this.#beganAtMs) / 1_000).toFixed(1).padStart(5);
    for (const line of lines) this.#say(this.#isReady ? `${new Date().toISOString().slice(11, 23)}  ${line}` : `${seconds} s  ${line}`);
  }
}
