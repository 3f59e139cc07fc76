import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { start } from "../kit/exec.ts";
import { checkedContent, clientCommand, endOf, type ClientPrograms, type Login } from "./client-program.ts";
import { isClosedByReader } from "./restore.ts";
import { failureOfProgram } from "./work-failure.ts";

/** Converts a pg_dump archive to SQL text, without a connection. */
export function archiveAsText(
  programs: ClientPrograms,
  login: Login,
  { archive, signal }: { readonly archive: Readable; readonly signal: AbortSignal },
): Readable {
  const args = ["--file=-", "--no-owner", "--no-acl"];
  const { command, env } = clientCommand(programs, { program: "pg_restore", args, login });
  const child = start(command, { env, ownGroup: true });
  const ended = endOf(child, signal);
  const feeding = pipeline(archive, child.stdin).then(
    () => undefined,
    (error: unknown) => error,
  );
  // The reader must not see the end of the text before the archive has been read and pg_restore has succeeded.
  const check = async () => {
    const { exitCode, stderr } = await ended;
    signal.throwIfAborted();
    if (exitCode !== 0) throw failureOfProgram("pg_restore", stderr);
    const fault = await feeding;
    // pg_restore leaves the last bytes of an archive unread, so a closed pipe is no error.
    if (fault !== undefined && !isClosedByReader(fault)) throw fault as Error;
  };
  return Readable.from(checkedContent(child.stdout, check), { objectMode: false });
}
