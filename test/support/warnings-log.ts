import { inspect } from "node:util";
import { silentLog, type Log } from "../../src/kit/log.ts";

/** Prints warnings and errors to standard error, so that a failed test shows the platform's messages. */
export const warningsLog: Log = {
  ...silentLog,
  warn: (fields, message) => print(`warning: ${message}`, fields),
  error: (fields, message) => print(`error: ${message}`, fields),
  child: () => warningsLog,
};

function print(message: string, fields: unknown): void {
  process.stderr.write(`${message} ${inspect(fields)}\n`);
}
