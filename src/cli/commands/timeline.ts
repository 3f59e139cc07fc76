import { addEntryOptions, entryQuery, entryTable } from "../render/entries.ts";
import { nextPage, rowCommand } from "../command-tree.ts";

export const addTimeline = rowCommand({
  row: "timeline.list",
  usage: "timeline",
  summary: "List what happened to the project, newest first",
  examples: ["berth timeline", "berth timeline --kind deployment,replica", "berth timeline -n 500 --json"],
  input: entryQuery,
  text: (page, paint) => entryTable(paint, page.timeline, { projects: false }),
  note: nextPage,
  options: addEntryOptions,
});
