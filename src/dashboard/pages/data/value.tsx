import { visible } from "../../data/format.ts";

/** Shows a cell's value in one line, so that null, an empty text and booleans look different from other text. */
export function Value({ value }: { readonly value: unknown }) {
  if (value === null || value === undefined) return <span className="text-faint italic">null</span>;
  if (typeof value === "string")
    return value === "" ? <span className="text-faint">''</span> : visible(value.slice(0, 300));
  if (typeof value === "boolean") return <span className="text-busy">{String(value)}</span>;
  return visible(typeof value === "object" ? JSON.stringify(value).slice(0, 300) : String(value as number));
}

// As many characters as fit a cell even if all are of the widest kind.
const surelyFitting = 24;

/** Returns whether a value may be too long for its cell. Only such cells clip, because each one that does costs time in every frame of scrolling. */
export function isLong(value: unknown): boolean {
  return typeof value === "object" ? value !== null : String(value as string | number | boolean).length > surelyFitting;
}

/** Types whose values are aligned to the right. */
export const isNumber = /^(?:small|big)?int|^numeric|^real|^double/;
