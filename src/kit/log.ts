/** What every layer logs with: a message for people and fields for machines. Never a secret: see `Sealed` values and `redact`. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Log;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** A log that says nothing, for tests and for tools that print their own progress. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};
