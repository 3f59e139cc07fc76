/** What every layer logs with: a message for people and fields for machines. Never a secret. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Log;
}

/** Anything that JSON can hold. A fault goes into `err`, with its stack: under any other name it would be an empty object. */
export interface LogFields {
  readonly [name: string]: unknown;
  readonly err?: unknown;
  readonly error?: string;
  readonly fault?: string;
  readonly cause?: string;
  readonly reason?: string | null;
}

/** A log that says nothing, for tests and for tools that print their own progress. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};
