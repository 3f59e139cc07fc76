import { z } from "zod";
import { limits } from "./limits.ts";

// Slugs that would collide with hosts and paths of the platform itself.
const reservedSlugs = [
  "admin",
  "api",
  "app",
  "berth",
  "git",
  "healthz",
  "internal",
  "metrics",
  "platform",
  "readyz",
  "static",
  "status",
  "v1",
  "www",
];

/** A project's or organization's name in paths: lower case letters, digits, inner hyphens, at most 40 characters. */
export const slug = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/, "use 1 to 40 lower case letters, digits and inner hyphens")
  .refine(
    (value) => !reservedSlugs.includes(value),
    `must not be one of the platform's own names: ${reservedSlugs.join(", ")}`,
  );

const line = z
  .string()
  .trim()
  .min(1, "must not be empty")
  .regex(
    /^[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]*$/,
    "must not contain control characters, line separators or marks that change the direction of text",
  );

/** A display name. */
export const name = line.max(100);

/** A one-line sentence for people. */
export const notice = line.max(300);

/** RFC 3339, UTC, milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 });

/** The cursor of the next page; null on the last one. */
export const nextCursor = z.string().nullable();

/** An id with its kind as prefix. Accepts any text, because a malformed id is simply not found. */
export const id = z.string().max(100);

/** A cursor of a list ordered by id. Other text is rejected here, because PostgreSQL can't store NUL. */
export const idCursor = z
  .string()
  .regex(/^[a-z]{3}_[0-9a-z]{1,90}$/, "use the next_cursor of the previous page")
  .optional();

/** A cursor of a list ordered by number. */
export const numberCursor = z
  .string()
  .regex(/^\d{1,9}$/, "use the next_cursor of the previous page")
  .transform(Number)
  .pipe(z.number().int().min(0).max(999_999_999))
  .optional();

/** A slug in a path. Accepts any text, because a wrong slug is not found rather than invalid. */
export const slugParam = z.object({ slug: z.string().max(100) });

/** The part that rows of a project share; a deleted project is refused. */
export const ofProject = { names: "project", living: true, params: slugParam } as const;

/** Creates the query of a list with pages: where the page begins, and how many entries it has, at most and by default `most`. */
export function pageQuery<Cursor extends z.ZodType>(cursor: Cursor, most: number) {
  return { cursor, limit: queryInteger(1, most, most) };
}

export function queryInteger(least: number, most: number, standard: number) {
  return integerText(least, most).default(standard);
}

export function optionalQueryInteger(least: number, most: number) {
  return integerText(least, most).optional();
}

function integerText(least: number, most: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().int().min(least).max(most));
}

/** `true` or `false` in a query string. */
export const queryFlag = z
  .enum(["true", "false"])
  .transform((value) => value === "true")
  .pipe(z.boolean())
  .default(false);

/** A moment: a timestamp, or how long before now. */
export const instant = z
  .string()
  .regex(
    /^(?:[1-9]\d{0,4}[smhd]|\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-][01]\d:[0-5]\d))$/,
    "use an instant such as 2026-01-31T09:00:00Z, or a duration before now such as 90s, 15m, 2h, 7d",
  )
  .refine((text) => /[smhd]$/.test(text) || !Number.isNaN(Date.parse(text)), "this instant does not exist");

export const commitHash = z.string().regex(/^[0-9a-f]{40}$/, "must be a full commit hash");

const file = z.strictObject({
  path: z.string().min(1).max(4096),
  text: z.string(),
  /** Defaults to the file's present mode, or to a plain file. */
  executable: z.boolean().optional(),
});

/** Files to write to a source, and paths to delete from it. */
export const changedFiles = {
  files: z.array(file).max(limits.files_changed).default([]),
  delete: z.array(z.string().min(1).max(4096)).max(limits.files_changed).default([]),
};

/** A path below a project's storage folder. */
export const insideStorage = z
  .string()
  .min(1)
  .max(1024)
  .refine(
    (path) => path.split("/").every((part) => part !== "" && part !== "." && part !== "..") && !path.includes("\0"),
    "must be a relative path below the storage folder, such as uploads/old",
  );
