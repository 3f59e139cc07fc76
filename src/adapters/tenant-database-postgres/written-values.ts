import { trimLast } from "../../kit/trim-last.ts";
import type { JsonObject } from "../../ports/tenant-database.ts";
import { columnOf, type Column, type Table } from "./catalogue.ts";
import { Stopped } from "./unable.ts";

/** A column and its new value in PostgreSQL's text format for the type. */
export interface Written {
  /** The part of the request that it comes from. */
  readonly field: "values" | "key";
  readonly column: Column;
  readonly text: string | null;
}

/** Converts JSON values to texts to bind. Throws `Stopped` (invalid) at the first column or value that is not valid. */
export function writtenValues(table: Table, given: JsonObject, field: Written["field"]): Written[] {
  return Object.entries(given).map(([name, value]) => {
    const column = columnOf(table, name);
    if (column === undefined) return refuse(`${field}.${name}`, "is not a column of the table");
    const written = textOf(column, value);
    if ("problem" in written) return refuse(`${field}.${name}`, written.problem);
    return { field, column, text: written.text };
  });
}

/** Ends the call: this part of the request is invalid. */
export function refuse(field: string, problem: string): never {
  throw new Stopped({ outcome: "invalid", field: field.slice(0, 100), problem });
}

type TextOf = { readonly text: string | null } | { readonly problem: string };

function textOf(column: Column, value: unknown): TextOf {
  if (value === null) return { text: null };
  if (column.base_type === "json" || column.base_type === "jsonb") return jsonText(value);
  switch (typeof value) {
    case "string":
      return stringText(column, value);
    case "number":
      return numberText(column, value);
    case "boolean":
      return column.category === "B"
        ? { text: String(value) }
        : { problem: `must be text for the type ${column.type}` };
    default:
      return { problem: `must be PostgreSQL's text of the type ${column.type}` };
  }
}

function stringText(column: Column, text: string): TextOf {
  if (text.includes("\0")) return { problem: "must not hold the character NUL" };
  // PostgreSQL would silently get another character for half of a surrogate pair.
  if (!text.isWellFormed()) return { problem: "must be well-formed Unicode" };
  const problem = lengthProblem(column, text);
  return problem === undefined ? { text } : { problem };
}

// Checks lengths, because PostgreSQL's error does not name the column. A type modifier of characters is the length plus four bytes.
function lengthProblem({ base_type, modifier }: Column, text: string): string | undefined {
  if (base_type === "varchar" || base_type === "bpchar") {
    const isTooLong = modifier >= 4 && [...trimLast(text, " ")].length > modifier - 4;
    return isTooLong ? `must have at most ${modifier - 4} characters` : undefined;
  }
  const isBits = modifier > 0 && /^[01]*$/.test(text);
  if (base_type === "bit" && isBits && text.length !== modifier) return `must have exactly ${modifier} bits`;
  if (base_type === "varbit" && isBits && text.length > modifier) return `must have at most ${modifier} bits`;
  return undefined;
}

// Every decimal number of up to 15 digits survives JSON parsers exactly; a longer one may have been altered.
const exactDigits = 15;

function numberText({ category, type, base_type }: Column, value: number): TextOf {
  if (category !== "N") return { problem: `must be text for the type ${type}` };
  const isFloat = base_type === "float4" || base_type === "float8";
  if (!isFloat && !isExact(value)) return { problem: "must be written as text: a JSON number this long loses digits" };
  return { text: String(value) };
}

function isExact(value: number): boolean {
  const digits = value.toExponential().replace(/e.*$/, "").replace(/\D/g, "");
  return Number.isSafeInteger(value) || digits.length <= exactDigits;
}

function jsonText(value: unknown): TextOf {
  const text = JSON.stringify(value);
  if (holdsInexact(value)) return { problem: "holds a number too long to be kept exactly" };
  // jsonb can't store the character NUL, and json that contains it can't be read.
  return text.includes("\\u0000") ? { problem: "must not hold the character NUL" } : { text };
}

function holdsInexact(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(holdsInexact);
}
