/** A page of a list that was read with one row more than it shows: what is shown, and where the next page begins, null at the end. */
export function pageOf<T>(
  rows: readonly T[],
  limit: number,
  cursorOf: (last: T) => string,
): { readonly shown: T[]; readonly next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { shown, next_cursor: rows.length > shown.length && last !== undefined ? cursorOf(last) : null };
}
