import type { Answer } from "../../contract/client.ts";
import type { Paint } from "./paint.ts";
import { table } from "./table.ts";
import { oneLine, relativeTime } from "./text.ts";

type Entry = Answer<"activity.list">["activity"][number];

/** What happened, newest first, one entry a line. */
export function entryTable(paint: Paint, entries: readonly Entry[], options: { readonly projects: boolean }): string {
  const rows = entries.map((entry) => [
    relativeTime(entry.at),
    ...(options.projects ? [entry.project ?? "-"] : []),
    oneLine(entry.actor.name, 30),
    /failed|crashed|out_of_memory|lost|not_served/.test(entry.action)
      ? paint.red(oneLine(entry.summary, 100))
      : oneLine(entry.summary, 100),
  ]);
  return table(paint, ["WHEN", ...(options.projects ? ["PROJECT"] : []), "WHO", "WHAT"], rows, "Nothing happened yet.");
}
