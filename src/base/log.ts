/**
 * The logger as rooms see it. Messages are constant text; everything variable is a field.
 *
 * `info` is what an operator of the service wants in an incident's timeline, `warn` is degraded but handled, `error`
 * needs a person, `debug` is the rest. Payloads and credentials never appear in fields.
 */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** The same logger with `fields` added to every line. */
  child(fields: LogFields): Log;
}

/** Variables of a log line; none of them is a payload or a secret. */
export type LogFields = Readonly<Record<string, unknown>>;
