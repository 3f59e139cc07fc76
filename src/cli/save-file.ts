import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createWriteStream, realpathSync, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { CliContext } from "./context.ts";
import { CliError } from "./failures.ts";

/**
 * Saves what `write` sends as a file of this name, and returns its path. The file appears once it is complete: a failure leaves no part of
 * it, and changes nothing of a file that was there. What is no regular file, such as `/dev/null` or a pipe, is written to directly.
 */
export async function saveFile(
  { environment }: Pick<CliContext, "environment">,
  name: string,
  { replaces }: { readonly replaces: boolean },
  write: (target: NodeJS.WritableStream) => Promise<void>,
): Promise<string> {
  const given = resolve(environment.cwd, name);
  const present = statSync(given, { throwIfNoEntry: false });
  if (present !== undefined && !replaces) throw notWritten(`${name} exists already.`);
  const file = present === undefined ? given : realpathSync(given);
  const isWhole = present === undefined || present.isFile();
  // Nobody else can have made a file of this name, for example a link in a folder that many users write to.
  const part = isWhole ? `${file}.${randomUUID()}.part` : file;
  const target = createWriteStream(part, { mode: 0o600, flags: isWhole ? "wx" : "w" });
  await once(target, "open").catch(({ code }: NodeJS.ErrnoException) => {
    throw notWritten(`${name} cannot be written (${code}).`);
  });
  if (!isWhole) {
    await write(target);
    return file;
  }
  try {
    await write(target);
    await rename(part, file);
  } catch (fault) {
    await rm(part, { force: true });
    throw fault;
  }
  return file;
}

function notWritten(message: string): CliError {
  return new CliError("refused", "file_not_written", { message, hint: "Name another file with `-o`." });
}
