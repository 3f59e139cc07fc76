import { z } from "zod";
import { needsAllProjects, type Access, type Scope } from "./access.ts";
import type { ErrorCode } from "./errors.ts";
import { limits } from "./limits.ts";

/** One route of the API as data: the single source for the server, the client, the documents and the tests. */
export interface Row {
  /** `<noun>.<verb>`. */
  readonly name: `${string}.${string}`;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With `:param` segments. */
  readonly path: `/v1/${string}`;
  /** The object that the path names. It is looked up before the rest of the request is validated. */
  readonly names: Named | null;
  /** The handler receives the path's project as `ctx.project`; a deleted project is refused with `project_deleted`. */
  readonly living: boolean;
  readonly access: Access;
  /** Null for rows that every token may call. */
  readonly scope: Scope | null;
  /** Required in addition when the row passes on rights of other nouns. */
  readonly further_scopes: readonly Scope[];
  /** Tokens that are limited to projects may call it, although its path names none: it contains only what belongs to their projects. */
  readonly within_projects: boolean;
  /** A token in approval mode must wait for a human's approval, unless its handler notes that this request loses nothing. */
  readonly approval: boolean;
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly body: z.ZodObject | null;
  /** The body is a file, not JSON, and the handler reads it as a stream: a tar archive, plain or gzip, or any file. */
  readonly upload: "archive" | "file" | null;
  /** The maximum size of a body; null: unlimited. */
  readonly body_bytes: number | null;
  /** Null when the response has no body (204). Undeclared fields never leave the server. */
  readonly result: z.ZodType | null;
  /** The field of the result that is shown only once: it is stored nowhere, and null in the response to a repeated request. */
  readonly secret: string | null;
  /** The default status first; a handler may choose one of the others. */
  readonly success: readonly [SuccessStatus, ...SuccessStatus[]];
  /** Errors that this row may return beyond the common ones. */
  readonly errors: readonly ErrorCode[];
  /** How a change appears in the activity list (`project.created`); null for rows that change nothing. */
  readonly activity: string | null;
  readonly summary: string;
  /** The handler commits its intent, and the response then waits for the outcome. */
  readonly waits: boolean;
  /** The row changes rights: this control plane clears its token cache after the commit and before the response. */
  readonly changes_rights: boolean;
  /** The response may occupy megabytes until its client has read it, so each token may have only a few open at once. */
  readonly large: boolean;
  /** The request starts programs that read or write the project's source, so each organization may have only a few in progress. */
  readonly handles_source: boolean;
  /** A person's session must have proved within 10 minutes that the person is there. Tokens need no such proof. */
  readonly fresh: boolean;
  /** With `follow=true` the response is `text/event-stream`; each event's data has the shape of the result. */
  readonly streams: boolean;
  /** The same request may be upgraded to a WebSocket of the protocol `berth.tunnel.v1`, which carries bytes instead of a response. */
  readonly upgrades: boolean;
}

/**
 * The WebSocket subprotocol of rows with `upgrades`: binary messages carry the bytes; text messages are JSON objects with a `type` (`end`:
 * this side sends no more bytes). The close frame's reason says why the tunnel ended.
 */
export const tunnelProtocol = "berth.tunnel.v1";

/** Prefix of a subprotocol that carries the token, for browsers, whose WebSocket can't send the `Authorization` header. */
export const bearerProtocol = "berth.bearer.";

export type Named =
  | "project"
  | "build"
  | "backup"
  | "token"
  | "member"
  | "invite"
  | "key"
  | "approval"
  | "organization"
  | "webhook"
  | "registry";

export type SuccessStatus = 200 | 201 | 204;

const noFields = z.object({});
const defaults = {
  names: null,
  living: false,
  further_scopes: [],
  within_projects: false,
  approval: false,
  params: noFields,
  query: noFields,
  body: null,
  upload: null,
  body_bytes: null,
  result: null,
  secret: null,
  errors: [],
  activity: null,
  waits: false,
  changes_rights: false,
  large: false,
  handles_source: false,
  fresh: false,
  streams: false,
  upgrades: false,
} as const;
type Defaults = typeof defaults;
interface Given extends Pick<Row, "name" | "summary">, Partial<Pick<Row, keyof Defaults | "success">> {
  readonly request: `${Row["method"]} ${Row["path"]}`;
  /** The access, and the scope unless every token may call the row. */
  readonly may: Access | `${Access} ${Scope}`;
}
type Split<Request, May> = (Request extends `${infer Method extends Row["method"]} ${infer Path extends Row["path"]}`
  ? { readonly method: Method; readonly path: Path }
  : never) &
  (May extends `${infer A extends Access} ${infer S extends Scope}`
    ? { readonly access: A; readonly scope: S }
    : { readonly access: May; readonly scope: null });

/** Completes a row with defaults: no parameters, no body, no result, status 200 with a result and 204 without, no further errors. */
export function row<const R extends Given>(
  given: R,
): Pick<Row, "success"> & Omit<Defaults, keyof R> & Omit<R, "request" | "may"> & Split<R["request"], R["may"]> {
  const { request, may, ...rest } = given;
  const [method, path] = request.split(" ");
  const [access, scope = null] = may.split(" ");
  const success = given.success ?? [given.result === undefined ? 204 : 200];
  const split = { method, path, access, scope, success } as unknown as Pick<Row, "success"> &
    Split<R["request"], R["may"]>;
  return { ...defaults, ...rest, ...split };
}

/** Returns the slug, id or host of the object that the path names; undefined when the path names none. */
export function nameOf(row: Pick<Row, "names">, params: unknown): string | undefined {
  const name = nameParameter(row);
  return name === undefined ? undefined : (params as Readonly<Record<string, string>>)[name];
}

export function nameParameter({ names }: Pick<Row, "names">): "slug" | "id" | "host" | undefined {
  if (names === null) return undefined;
  if (names === "registry") return "host";
  return names === "project" || names === "organization" ? "slug" : "id";
}

/** Returns whether the path also names the project's organization, as operator routes may. */
export function namesOrganization({ params }: Pick<Row, "params">): boolean {
  return "org" in params.shape;
}

/** Returns whether a row is a write, with an Idempotency-Key and `?dry_run=true`. A POST with a reading scope only has a body. */
export function changes(row: Pick<Row, "method" | "scope">): boolean {
  return row.method !== "GET" && row.scope?.endsWith(":read") !== true;
}

/** Returns the names of the body's fields that are marked with `writeOnly`: secrets, which are never shown again. */
export function secretFields({ body }: Pick<Row, "body">): readonly string[] {
  const fields = Object.entries((body?.shape ?? {}) as Readonly<Record<string, z.ZodType>>);
  return fields.filter(([, schema]) => schema.meta()?.["writeOnly"] === true).map(([name]) => name);
}

function commonErrors(row: Row): readonly ErrorCode[] {
  const always: ErrorCode[] = [
    "invalid_request",
    "method_not_allowed",
    "payload_too_large",
    "rate_limited",
    "internal",
    "unavailable",
  ];
  // The body is parsed before it is known whether the row has one.
  if (row.method !== "GET") always.push("unsupported_media_type");
  if (row.access === "public") return always;
  always.push("unauthorized", "org_suspended");
  if (row.access === "owner") always.push("owner_only");
  if (row.access === "operator") always.push("operator_only");
  if (needsAllProjects(row)) always.push("unlimited_only");
  if (row.scope !== null || row.further_scopes.length > 0) always.push("insufficient_scope");
  if (row.fresh) always.push("fresh_sign_in_required");
  if (row.approval) always.push("approval_required", "approval_denied");
  if (changes(row)) always.push("idempotency_mismatch", "idempotency_in_progress", "idempotency_answer_gone");
  if (Object.keys(row.params.shape).length > 0) always.push("not_found");
  if (row.living) always.push("project_deleted");
  return always;
}

export function errorsOf(row: Row): readonly ErrorCode[] {
  return [...new Set([...commonErrors(row), ...row.errors])];
}

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

/** What a change of the live files replaced. */
export const keptFiles = {
  /** Where the replaced file or folder is kept, below `$STORAGE_DIR`; null: nothing was replaced. */
  kept: z.string().nullable(),
  /** The `folder` with which `backups.restore_path` brings it back. */
  kept_folder: z.string().nullable(),
};

/** A path of the live files there. */
export const liveFile = insideStorage.refine((path) => path.split("/")[0] !== ".restored", "must lead to live files");
