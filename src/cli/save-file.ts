import { once } from "node:events";
import { createWriteStream, existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { CliContext } from "./context.ts";
import { CliError } from "./failures.ts";

/**
 * Saves what `write` sends as a file of this name, and returns its path. The file appears once it is complete: what fails leaves neither a
 * part of it, nor changes one that was there.
 */
export async function saveFile(
  { environment }: Pick<CliContext, "environment">,
  name: string,
  { replaces }: { readonly replaces: boolean },
  write: (target: NodeJS.WritableStream) => Promise<void>,
): Promise<string> {
  const file = resolve(environment.cwd, name);
  if (!replaces && existsSync(file)) throw notWritten(`${name} exists already.`);
  const part = `${file}.part`;
  const target = createWriteStream(part, { mode: 0o600 });
  await once(target, "open").catch(({ code }: NodeJS.ErrnoException) => {
    throw notWritten(`${name} cannot be written (${code}).`);
  });
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
