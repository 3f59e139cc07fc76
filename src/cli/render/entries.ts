import type { Command } from "commander";
import { entryKinds } from "../../contract/activity.ts";
import type { Answer } from "../../contract/client.ts";
import { wholeNumber } from "../input.ts";
import { table, oneLine, relativeTime, type Paint } from "./text.ts";

type Entry = Answer<"activity.list">["activity"][number];

/** Formats events as a table, newest first, one per line. */
export function entryTable(paint: Paint, entries: readonly Entry[], options: { readonly projects: boolean }): string {
  const rows = entries.map((entry) => [
    relativeTime(entry.at),
    ...(options.projects ? [entry.project ?? "-"] : []),
    entry.actor.type === "platform" ? "the platform" : oneLine(entry.actor.name, 30),
    /failed|crashed|out_of_memory|lost|not_served/.test(entry.action)
      ? paint.red(oneLine(entry.summary, 160))
      : oneLine(entry.summary, 160),
  ]);
  return table(paint, ["WHEN", ...(options.projects ? ["PROJECT"] : []), "WHO", "WHAT"], rows, "Nothing happened yet.");
}

export function addEntryOptions(command: Command): Command {
  return command
    .option("-n, --limit <number>", "how many, 1 to 500", "30")
    .option("--kind <kinds>", `only these kinds, separated by commas: ${entryKinds.join(", ")}`)
    .option("--cursor <cursor>", "the page after an earlier one, by its next_cursor");
}

/** Converts those options to a query. */
export function entryQuery({ limit, kind, cursor }: Readonly<Record<string, string>>) {
  return { query: { limit: wholeNumber(limit ?? "", "--limit", { least: 1, most: 500 }), kind, cursor } };
}
