import { randomBytes } from "node:crypto";
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { UpgradeStep } from "../../ports/releases.ts";
import { diskFault } from "../../kit/disk-fault.ts";
import { readTextOrEmpty, syncFolder } from "../../kit/whole-file.ts";
import { parseJson } from "../../kit/parse-json.ts";

/** The steps of an upgrade, in order. From `switching` on, an upgrade that fails goes back. */
export const upgradeSteps = [
  "requested",
  "fetched",
  "checked",
  "backed_up",
  "copied",
  "rehearsed",
  "switching",
  "switched",
  "done",
] as const;

/** A line of the file: a step that is complete, and what later steps need to know. */
export interface Step extends UpgradeStep {
  /** With `requested`: what to install, and the version that runs. */
  readonly source?: string | null;
  readonly without_backup?: boolean;
  readonly from?: string;
  /** Whose systemd runs the control plane. */
  readonly service?: "system" | "user" | null;
  /** With `fetched`. */
  readonly to?: string;
  /** With `checked`: hostnames whose applications answered. */
  readonly answered?: readonly string[];
  /** With `backed_up`: the backup of the platform; null if none was wanted. */
  readonly backup?: string | null;
  /** With `copied`. */
  readonly copy?: string;
}

/** Reads the lines; a line that a power failure cut off does not count. */
export function readSteps(file: string): readonly Step[] {
  return readTextOrEmpty(file)
    .split("\n")
    .slice(0, -1)
    .flatMap((line) => parseJson<Step>(line) ?? []);
}

// Room for the lines of an upgrade during which the disk gets full, so that its reason is always written.
const reserveBytes = 64 * 1024;
const reserveOf = (file: string) => `${file}.reserve`;

/** Appends a line, which a power failure then does not lose. */
export function appendStep(file: string, step: Omit<Step, "at">): void {
  try {
    append(file, step);
  } catch (error) {
    if (diskFault(error) !== "full" || !existsSync(reserveOf(file))) throw error;
    rmSync(reserveOf(file));
    append(file, step);
  }
}

function append(file: string, step: Omit<Step, "at">): void {
  const text = readTextOrEmpty(file);
  const descriptor = openSync(file, "a", 0o600);
  try {
    appendFileSync(
      descriptor,
      `${text === "" || text.endsWith("\n") ? "" : "\n"}${JSON.stringify({ ...step, at: new Date().toISOString() })}\n`,
    );
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Begins the file of a new upgrade; the one before stays beside it. */
export function beginSteps(file: string, request: Pick<Step, "source" | "without_backup" | "from" | "service">): void {
  writeFileSync(reserveOf(file), randomBytes(reserveBytes), { mode: 0o600, flush: true });
  if (existsSync(file)) renameSync(file, `${file}.before`);
  appendStep(file, { step: "requested", ...request });
  syncFolder(dirname(file));
}

/** Returns whether the upgrade of these lines has neither succeeded nor failed. */
export function isUnderWay(steps: readonly Step[]): boolean {
  const last = steps.at(-1)?.step;
  return last !== undefined && last !== "done" && last !== "failed" && last !== "back";
}
