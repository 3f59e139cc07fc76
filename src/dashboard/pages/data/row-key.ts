import type { Row, TablePageRows } from "./table-rows.ts";

/** Returns the values that identify one row: its primary key, or a unique key without nulls; undefined if it has neither. */
export function keyOf(page: TablePageRows, row: Row): Row | undefined {
  const columns = page.primary_key ?? page.keys.find((key) => key.every((name) => row[name] !== null));
  if (columns === undefined) return undefined;
  return Object.fromEntries(columns.map((name) => [name, row[name]]));
}

/** Returns a key as text for the user to type. */
export function keyText(key: Row): string {
  return Object.values(key)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" ");
}
