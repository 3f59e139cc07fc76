import type { Row, TablePageRows } from "./table-rows.ts";

/** What names exactly one row: the primary key, or a unique one without nulls; undefined for a row that nothing names. */
export function keyOf(page: TablePageRows, row: Row): Row | undefined {
  const columns = page.primary_key ?? page.keys.find((key) => key.every((name) => row[name] !== null));
  if (columns === undefined) return undefined;
  return Object.fromEntries(columns.map((name) => [name, row[name]]));
}

/** The same as text to be typed. */
export function keyText(key: Row): string {
  return Object.values(key)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" ");
}
