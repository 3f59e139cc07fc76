import { openAsBlob } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { CliContext } from "./context.ts";
import { usageError } from "./failures.ts";
import { readStdin } from "./prompts.ts";

/** Reads a file, or stdin for `-`. Throws a usage error that names the file if it can't be read. */
export async function readInput(ctx: CliContext, file: string): Promise<string> {
  if (file === "-") return readStdin(ctx.environment);
  try {
    return await readFile(resolve(ctx.environment.cwd, file), "utf8");
  } catch (fault) {
    throw unreadable(file, fault);
  }
}

/** Opens a file that is sent as it is. Throws a usage error that names it if it can't be read. */
export async function fileToSend(ctx: CliContext, file: string): Promise<Blob> {
  const path = resolve(ctx.environment.cwd, file);
  // Its own errors name no reason.
  await using opened = await open(path).catch((fault: unknown) => {
    throw unreadable(file, fault);
  });
  if ((await opened.stat()).isFile()) return openAsBlob(path);
  throw usageError(`${file} is not a file.`);
}

const unreadable = (file: string, fault: unknown) =>
  usageError(`${file} cannot be read (${(fault as NodeJS.ErrnoException).code}).`);

/** Parses the text of an option, if it was given. */
export function ifGiven<T>(text: string | undefined, parse: (text: string) => T): T | undefined {
  return text === undefined ? undefined : parse(text);
}

/** Parses a whole number for an option or argument called `name`. */
export function wholeNumber(text: string, name: string, range: { least: number; most: number }): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= range.least && value <= range.most) return value;
  throw usageError(`${name} must be a whole number from ${range.least} to ${range.most}.`);
}

export function deploymentNumber(text: string): number {
  const number = text.replace(/^#/, "");
  if (/^\d+$/.test(number)) return wholeNumber(number, "The deployment", { least: 1, most: 2_147_483_647 });
  throw usageError(
    "The deployment must be a number, such as 12.",
    "`berth deployments` lists the numbers. Name a project with `-p <slug>`.",
  );
}

/** Converts a time for the API. A duration is relative to the platform's clock; a time without a zone is in this machine's. */
export function instant(text: string | undefined, name: string): string | undefined {
  if (text === undefined || /^[1-9]\d{0,4}[smhd]$/.test(text)) return text;
  const ms = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms))
    throw usageError(`${name} must be a duration such as 15m or 2h, or a time such as 2026-01-31T09:00:00Z.`);
  return new Date(ms).toISOString();
}
