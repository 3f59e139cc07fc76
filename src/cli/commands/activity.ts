import { addEntryOptions, entryQuery, entryTable } from "../render/entries.ts";
import { nextPage, rowCommand } from "../command-tree.ts";

export const addActivity = rowCommand({
  row: "activity.list",
  usage: "activity",
  summary: "List what happened in the organization, newest first",
  examples: ["berth activity", "berth activity --kind access", "berth activity -n 500 --json"],
  input: entryQuery,
  text: (page, paint) => entryTable(paint, page.activity, { projects: true }),
  note: nextPage,
  options: addEntryOptions,
});
