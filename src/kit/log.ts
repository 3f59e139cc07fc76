/** The logger of every layer: a message for people and fields for machines. Never log a secret. */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Log;
}

/** Fields of any JSON type. Pass an error as `err`, which is logged with its stack; under any other name it becomes an empty object. */
export interface LogFields {
  readonly [name: string]: unknown;
  readonly err?: unknown;
  readonly error?: string;
  readonly fault?: string;
  readonly cause?: string;
  readonly reason?: string | null;
}

/** A logger that discards everything, for tests and for tools that print their own progress. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};
