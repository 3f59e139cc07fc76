import { visible } from "../../data/format.ts";

/** A cell in one line: what is no text looks like what it is. */
export function Value({ value }: { readonly value: unknown }) {
  if (value === null || value === undefined) return <span className="text-faint italic">null</span>;
  if (typeof value === "string")
    return value === "" ? <span className="text-faint">''</span> : visible(value.slice(0, 300));
  if (typeof value === "boolean") return <span className="text-busy">{String(value)}</span>;
  return visible(typeof value === "object" ? JSON.stringify(value).slice(0, 300) : String(value as number));
}

// Of the widest characters.
const surelyFitting = 24;

/** Whether a value may have to be cut to fit a cell. Only then: each cell that clips costs time in every frame of scrolling. */
export function isLong(value: unknown): boolean {
  return typeof value === "object" ? value !== null : String(value as string | number | boolean).length > surelyFitting;
}

/** Types whose values stand at the right. */
export const isNumber = /^(?:small|big)?int|^numeric|^real|^double/;
