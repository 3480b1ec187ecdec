/** A log that says nothing, and one that tells a trace. */
import type { Log, LogFields } from "../../src/base/log.ts";

export const fairQuiet: Log = {
  debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined, child: () => fairQuiet,
};

/** Every line goes to `say`. */
export function spokenLog(say: (line: string) => void): Log {
  const speak = (level: string) => (fields: LogFields, message: string): void => say(`${level} ${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: speak("debug"), info: speak("info"), warn: speak("warn"), error: speak("error"), child: () => log };
  return log;
}
