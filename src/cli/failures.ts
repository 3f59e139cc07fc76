import { ApiError, ConnectionError, InvalidCall } from "../contract/client-errors.ts";

/** The CLI's exit codes. Scripts rely on them: they are documented and never change their meaning. */
export const exitCodes = {
  ok: 0,
  refused: 1,
  usage: 2,
  unauthorized: 3,
  notFound: 4,
  conflict: 5,
  unavailable: 6,
  deploymentFailed: 7,
  approvalRequired: 8,
  checkFailed: 9,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** A failure detected by the CLI itself; `code` is stable, like the API's codes. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  readonly code: string;
  readonly hint: string | undefined;
  constructor(kind: keyof typeof exitCodes, code: string, text: { message: string; hint?: string | undefined }) {
    super(text.message);
    this.name = "CliError";
    this.exitCode = exitCodes[kind];
    this.code = code;
    this.hint = text.hint;
  }
}

/** The program that was run for the user has exited: the CLI exits with the same code and prints nothing. */
export class ApplicationExit extends Error {
  readonly exitCode: number;
  constructor(exitCode: number) {
    super(`exit code ${exitCode}`);
    this.name = "ApplicationExit";
    this.exitCode = exitCode;
  }
}

/** Creates an error for a wrong command line. The text must not repeat an argument that may hold a secret. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError("usage", "usage", { message, hint });
}

export function exitCodeOf(fault: unknown): ExitCode {
  if (fault instanceof CliError) return fault.exitCode;
  if (fault instanceof ApiError) return exitCodeOfAnswer(fault);
  if (fault instanceof ConnectionError) return exitCodes.unavailable;
  if (fault instanceof InvalidCall) return exitCodes.usage;
  return exitCodes.refused;
}

function exitCodeOfAnswer({ status, code }: ApiError): ExitCode {
  if (code === "previous_unhealthy" || code === "restart_failed") return exitCodes.deploymentFailed;
  if (code === "approval_required") return exitCodes.approvalRequired;
  if (status >= 500 || status === 429) return exitCodes.unavailable;
  if (status === 400) return exitCodes.usage;
  if (status === 401) return exitCodes.unauthorized;
  if (status === 404) return exitCodes.notFound;
  if (status === 409) return exitCodes.conflict;
  return exitCodes.refused;
}
