import type { Looked, ShownRow, Unable } from "../../ports/tenant-database.ts";
import { Refused } from "../context.ts";

/** What was found. Throws the refusal when there is nothing. */
export function foundIn<T>(looked: Looked<T>, did: "read" | "write"): T {
  if (looked.outcome === "done") return looked.found;
  throw refusalOf(looked, did);
}

function refusalOf(unable: Unable, did: "read" | "write"): Refused {
  switch (unable.outcome) {
    case "missing":
      return new Refused("not_found");
    case "invalid": {
      const { field: path, problem: message } = unable;
      return new Refused("invalid_request", { error: `${path}: ${message}`, details: [{ path, message }] });
    }
    case "conflict":
      return new Refused("conflict", { error: unable.problem, hint: unable.hint ?? "" });
    case "timeout":
      return new Refused("query_timeout", { hint: hints[did] });
    case "unavailable":
      return new Refused("unavailable", { error: unable.problem });
  }
}

const hints = {
  read: "Sort by a column with an index, search less, or skip fewer rows.",
  write: "Look whether the change was made before you try again.",
} as const;

/** Where the next page starts; null when there is none. */
export function nextOffset(offset: number, shown: number, more: boolean): number | null {
  return more && shown > 0 ? offset + shown : null;
}

/** Which cells of a page were cut, by the row's place on it. */
export function cutCells(rows: readonly ShownRow[]): { row: number; columns: string[] }[] {
  return rows.flatMap(({ cut }, row) => (cut.length === 0 ? [] : [{ row, columns: [...cut] }]));
}
