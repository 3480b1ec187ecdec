// A log that keeps its lines for the test.

import type { Log, LogFields } from "../../src/base/log.ts";

export type LogLine = { readonly level: "debug" | "info" | "warn" | "error"; readonly message: string; readonly fields: LogFields };

export class FakeLog implements Log {
  readonly lines: LogLine[];
  readonly #fields: LogFields;

  constructor(options: { readonly lines?: LogLine[]; readonly fields?: LogFields } = {}) {
    this.lines = options.lines ?? [];
    this.#fields = options.fields ?? {};
  }

  debug(fields: LogFields, message: string): void {
    this.lines.push({ level: "debug", message, fields: { ...this.#fields, ...fields } });
  }

  info(fields: LogFields, message: string): void {
    this.lines.push({ level: "info", message, fields: { ...this.#fields, ...fields } });
  }

  warn(fields: LogFields, message: string): void {
    this.lines.push({ level: "warn", message, fields: { ...this.#fields, ...fields } });
  }

  error(fields: LogFields, message: string): void {
    this.lines.push({ level: "error", message, fields: { ...this.#fields, ...fields } });
  }

  child(fields: LogFields): Log {
    return new FakeLog({ lines: this.lines, fields: { ...this.#fields, ...fields } });
  }

  messages(level?: LogLine["level"]): readonly string[] {
    return this.lines.filter((line) => level === undefined || line.level === level).map(({ message }) => message);
  }
}
