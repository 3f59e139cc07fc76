/** The part of a list to read: what comes after the cursor, at most `limit` entries. */
export interface Page<Cursor> {
  readonly cursor?: Cursor | undefined;
  readonly limit: number;
}

/** Makes a page of a list that was read with one extra row: returns the rows to show and the cursor of the next page, null at the end. */
export function pageOf<T>(
  rows: readonly T[],
  limit: number,
  cursorOf: (last: T) => string,
): { readonly shown: T[]; readonly next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { shown, next_cursor: rows.length > shown.length && last !== undefined ? cursorOf(last) : null };
}
