import { escapeIdentifier } from "pg";
import type { ShownRow } from "../../ports/tenant-database.ts";
import type { Column } from "./catalogue.ts";

/** Longer texts are truncated: semantics, "Browser". */
const mostCellBytes = 4096;

/**
 * Returns the expression for a column of `alias` as text, slightly longer than the browser shows. It uses the type's own output function,
 * because the owner may have defined the cast; only long texts and bytes are truncated before they are read completely.
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
  // IS NULL would be true for a composite value whose fields are all null.
  return `CASE WHEN ${value} IS DISTINCT FROM NULL THEN pg_catalog.left(pg_catalog.format('%s', ${value}), ${letters}) END`;
}

export function presentRow(columns: readonly Column[], texts: readonly (string | null)[]): ShownRow {
  const cut: string[] = [];
  const entries = columns.map((column, index) => {
    const cell = presentCell(column.base_type, texts[index] ?? null);
    if (cell.cut) cut.push(column.name);
    return [column.name, cell.value] as const;
  });
  // Object.fromEntries defines properties, so a column named __proto__ is safe.
  return { row: Object.fromEntries(entries), cut };
}

/** Converts a text from PostgreSQL to the value that the browser shows. */
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
  // Every code unit has at least one byte. A cell of a user's statement may have 64 MiB.
  const bytes = Buffer.from(text.slice(0, mostCellBytes + 1));
  if (bytes.length <= mostCellBytes) return text;
  // In stream mode, the decoder omits an incomplete character at the end.
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

// Not yet in TypeScript's library: creates a number that keeps its spelling when serialised as JSON.
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

/** Parses JSON but keeps the spelling of its numbers, such as 12345678901234567890. Returns the text itself when it is nested too deeply. */
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

// Some JSON parsers fail at a depth of 1,000, and no reader of a cell needs more than a few levels.
const mostDepth = 100;

/** Also counts brackets inside strings; at worst, a rare JSON value is shown as text. */
function isDeep(text: string): boolean {
  let depth = 0;
  for (const letter of text) {
    if (letter === "[" || letter === "{") depth += 1;
    else if (letter === "]" || letter === "}") depth -= 1;
    if (depth > mostDepth) return true;
  }
  return false;
}
