import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { CliError } from "./failures.ts";

const platform = z.object({ url: z.string(), token: z.string() });
const config = z.object({ current: z.string().nullable(), contexts: z.record(z.string(), platform) });

export type KnownPlatform = z.output<typeof platform>;
/** The platforms by the names that the user gave them. */
export type Config = z.output<typeof config>;

/** Reads the config file; a missing file counts as empty. Throws `CliError` if it can't be read, without repeating its content. */
export async function readConfig(file: string): Promise<Config> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code === "ENOENT") return { current: null, contexts: {} };
    throw new CliError("refused", "config_unreadable", {
      message: `${file} cannot be read (${(fault as NodeJS.ErrnoException).code}).`,
    });
  }
  return parseConfig(text, file);
}

/** Replaces the config file atomically; only its owner can read it. */
export async function writeConfig(file: string, content: Config): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { flag: "wx", mode: 0o600, flush: true });
    await rename(draft, file);
  } catch (fault) {
    await rm(draft, { force: true });
    throw fault;
  }
}

function parseConfig(text: string, file: string): Config {
  const broken = { message: `${file} is damaged.`, hint: "Remove it and run `berth login` again." };
  try {
    return config.parse(JSON.parse(text));
  } catch {
    throw new CliError("refused", "config_unreadable", broken);
  }
}
