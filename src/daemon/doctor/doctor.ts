import { StartRefused, type Config } from "../config.ts";
import { examine, type Finding } from "./examine.ts";

export const doctorUsage = `Usage: berthd doctor [--fix] [--json]

  Examines what Berth needs on this machine, with these settings, whether it runs or not: each part with its state, and what mends it.

  --fix   install the programs that are missing, as a start does
  --json  print the findings as JSON`;

/** Prints what Berth needs on this machine and how to mend it. Returns whether nothing fails. */
export async function doctor(config: Config, args: readonly string[], say: (line: string) => void): Promise<boolean> {
  const unknown = args.find((arg) => arg !== "--fix" && arg !== "--json");
  if (unknown !== undefined) throw new StartRefused(`berthd doctor does not know "${unknown}".\n${doctorUsage}`);
  const findings = await examine(config, { fix: args.includes("--fix") });
  if (args.includes("--json")) say(JSON.stringify({ findings }, null, 2));
  else for (const finding of findings) say(lineOf(finding));
  return findings.every(({ status }) => status !== "fail");
}

function lineOf({ status, check, detail, remedy }: Finding): string {
  const line = `${status.padEnd(5)} ${check.padEnd(13)} ${detail}`;
  return remedy === null ? line : `${line}\n${" ".repeat(20)}→ ${remedy}`;
}
