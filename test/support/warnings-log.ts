import { silentLog, type Log } from "../../src/kit/log.ts";

/** Prints warnings and errors to standard error, so that a failed test shows what the platform said. */
export const warningsLog: Log = {
  ...silentLog,
  warn: (fields, message) => console.error(`warning: ${message}`, fields),
  error: (fields, message) => console.error(`error: ${message}`, fields),
  child: () => warningsLog,
};
