import { stripVTControlCharacters } from "node:util";
import type { Paint } from "./paint.ts";

/** Formats rows under a head, in columns two spaces apart. `empty` is shown if there are no rows. */
export function table(
  paint: Paint,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
): string {
  if (rows.length === 0) return empty;
  return columns([head.map((word) => paint.dim(word)), ...rows]);
}

/** Formats names and values, one pair per line. */
export function facts(paint: Paint, pairs: readonly (readonly [string, string | null])[]): string {
  return columns(
    pairs.filter(([, value]) => value !== null).map(([name, value]) => [paint.dim(name), value as string]),
  );
}

/** Aligns cells; colour codes do not count as width. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width(cell));
  const line = (row: readonly string[]) =>
    row.map((cell, index) => cell + " ".repeat((widths[index] as number) - width(cell))).join("  ");
  return rows.map((row) => line(row).trimEnd()).join("\n");
}

function width(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}
