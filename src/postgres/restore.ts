import { pipeline } from "node:stream/promises";
import { start } from "../kit/exec.ts";
import type { RestoreOptions } from "../ports/postgres-host.ts";
import { clientCommand, endOf, halt, type ClientPrograms, type Login } from "./client-program.ts";
import { failureOfProgram } from "./work-failure.ts";

// The role's settings protect against an application's accidents and would abort a restore; its owner may add more at any time.
const session = [
  "default_transaction_read_only=off",
  "statement_timeout=0",
  "lock_timeout=0",
  "idle_in_transaction_session_timeout=0",
  "idle_session_timeout=0",
  "local_preload_libraries=",
  "role=none",
]
  .map((setting) => `-c ${setting}`)
  .join(" ");

/** Restores in one transaction. Logs in as the project's own role: a superuser would run code that the archive's owner wrote. */
export async function restoreDatabase(
  programs: ClientPrograms,
  login: Login,
  { archive, signal }: RestoreOptions,
): Promise<void> {
  const args = [
    `--dbname=${login.database}`,
    "--single-transaction",
    "--exit-on-error",
    "--no-owner",
    "--no-acl",
    "--no-password",
  ];
  const { command, env } = clientCommand(programs, { program: "pg_restore", args, login, options: session });
  const child = start(command, { env, ownGroup: true });
  const ended = endOf(child, signal);
  child.stdout.resume();
  // If the archive breaks off, kill pg_restore before its input ends: a truncated archive must not look complete.
  const feeding = pipeline(archive, child.stdin).then(
    () => undefined,
    (error: unknown) => {
      if (!isClosedByReader(error)) halt(child);
      return error;
    },
  );
  const [{ exitCode, stderr }, fault] = await Promise.all([ended, feeding.finally(() => archive.destroy())]);
  signal.throwIfAborted();
  if (fault !== undefined && !isClosedByReader(fault)) throw fault as Error;
  if (exitCode !== 0) throw failureOfProgram("pg_restore", stderr);
}

/** Returns whether writing to a program failed because it exited first; its own error explains why. */
export function isClosedByReader(error: unknown): boolean {
  return ["EPIPE", "ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE"].includes((error as NodeJS.ErrnoException).code ?? "");
}
