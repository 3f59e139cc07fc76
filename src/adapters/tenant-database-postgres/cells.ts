import { escapeIdentifier } from "pg";
import type { ShownRow } from "../../ports/tenant-database.ts";
import type { Column } from "./catalogue.ts";

/** Longer texts are cut: semantics, "Browser". */
const mostCellBytes = 4096;

/**
 * The expression that shows a column of `alias` as text, a little longer than what is shown of it. It goes by the type's own
 * output function, because a cast may be the owner's; only long texts and bytes are cut before they are read whole.
 */
export function cellExpression(alias: string, column: Column): string {
  const value = `${alias}.${escapeIdentifier(column.name)}`;
  const letters = mostCellBytes + 1;
  if (column.base_type === "text" || column.base_type === "varchar")
    return `pg_catalog.left(${value}::pg_catalog.text, ${letters})`;
  if (column.base_type === "bytea") {
    const bytes = `pg_catalog.substring(${value}::pg_catalog.bytea, 1, ${mostCellBytes / 2})`;
    return `'\\x' || pg_catalog.encode(${bytes}, 'hex')`;
  }
  // Of a composite value whose fields are all null, IS NULL would be true.
  return `CASE WHEN ${value} IS DISTINCT FROM NULL THEN pg_catalog.left(pg_catalog.format('%s', ${value}), ${letters}) END`;
}

/** A row of texts, one for each column, as it is shown. */
export function presentRow(columns: readonly Column[], texts: readonly (string | null)[]): ShownRow {
  const cut: string[] = [];
  const entries = columns.map((column, index) => {
    const cell = presentCell(column.base_type, texts[index] ?? null);
    if (cell.cut) cut.push(column.name);
    return [column.name, cell.value] as const;
  });
  // Object.fromEntries defines properties, so that a column may be called __proto__.
  return { row: Object.fromEntries(entries), cut };
}

/** A text as PostgreSQL wrote it, as it is shown. */
export function presentCell(
  baseType: string | null,
  text: string | null,
): { readonly value: unknown; readonly cut: boolean } {
  if (text === null) return { value: null, cut: false };
  const shown = cutText(text);
  return shown.length < text.length ? { value: shown, cut: true } : { value: valueOf(baseType, text), cut: false };
}

function cutText(text: string): string {
  if (text.length * 3 <= mostCellBytes) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= mostCellBytes) return text;
  // As part of a stream: a letter that is cut through waits for its other half and is left out.
  return new TextDecoder().decode(bytes.subarray(0, mostCellBytes), { stream: true });
}

function valueOf(baseType: string | null, text: string): unknown {
  switch (baseType) {
    case "bool":
      return text === "t";
    case "int2":
    case "int4":
      return Number(text);
    case "json":
    case "jsonb":
      return parseExactly(text);
    default:
      return text;
  }
}

interface Source {
  readonly source?: string;
}

// Not yet in TypeScript's library: a number that keeps its spelling when it is written as JSON again.
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

/** JSON with its numbers as they were written: 12345678901234567890 stays itself. Nested deeper than readers bear: the text. */
function parseExactly(text: string): unknown {
  if (isDeep(text)) return text;
  try {
    return JSON.parse(text, function keep(this: unknown, _key: string, value: unknown, context?: Source): unknown {
      const source = context?.source;
      return typeof value === "number" && source !== undefined && String(value) !== source ? rawJSON(source) : value;
    } as (this: unknown, key: string, value: unknown) => unknown);
  } catch {
    return text;
  }
}

// Some readers of JSON end at a depth of 1,000, and none of a cell's readers wants a hundredth of it.
const mostDepth = 100;

/** Counts brackets in strings as well, which only shows a rare text as text. */
function isDeep(text: string): boolean {
  let depth = 0;
  for (const letter of text) {
    if (letter === "[" || letter === "{") depth += 1;
    else if (letter === "]" || letter === "}") depth -= 1;
    if (depth > mostDepth) return true;
  }
  return false;
}
