import type { Looked, ShownRow, Unable } from "../../ports/tenant-database.ts";
import type { RefusalText } from "../context.ts";

type Code = "not_found" | "invalid_request" | "conflict" | "query_timeout" | "unavailable";

/** How the caller refuses a request. */
interface Asking {
  readonly fail: (code: Code, more?: RefusalText) => never;
}

/** Returns what was found; refuses when nothing was. */
export function foundIn<T>(asking: Asking, looked: Looked<T>, did: keyof typeof hints): T {
  if (looked.outcome === "done") return looked.found;
  return refuse(asking, looked, did);
}

function refuse({ fail }: Asking, unable: Unable, did: keyof typeof hints): never {
  switch (unable.outcome) {
    case "missing":
      return fail("not_found");
    case "invalid": {
      const { field: path, problem: message } = unable;
      return fail("invalid_request", { error: `${path}: ${message}`, details: [{ path, message }], foreign: true });
    }
    case "conflict":
      return fail("conflict", { error: unable.problem, hint: unable.hint ?? "", foreign: true });
    case "timeout":
      return fail("query_timeout", { hint: hints[did] });
    case "unavailable":
      return fail("unavailable", { error: unable.problem });
  }
}

const hints = {
  read: "Sort by a column with an index, search less, or skip fewer rows.",
  query: "Read fewer rows, or filter by a column with an index. EXPLAIN shows the query plan.",
  write: "Check whether the change was made before you try again.",
} as const;

export function nextOffset(offset: number, shown: number, more: boolean): number | null {
  return more && shown > 0 ? offset + shown : null;
}

/** Returns which cells of a page were cut, by row index. */
export function cutCells(rows: readonly ShownRow[]): { row: number; columns: string[] }[] {
  return rows.flatMap(({ cut }, row) => (cut.length === 0 ? [] : [{ row, columns: [...cut] }]));
}
