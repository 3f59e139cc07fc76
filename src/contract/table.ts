import { z } from "zod";
import { needsAllProjects, type Access, type Scope } from "./access.ts";
import type { ErrorCode } from "./errors.ts";

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
  /** The body is a file, not JSON; the handler reads it as a stream. */
  readonly upload: boolean;
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
  upload: false,
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
  /** The method and the path. */
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

/** Returns the errors that are common to all rows of this shape. */
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

/** Returns every error code that a row may respond with, each once. */
export function errorsOf(row: Row): readonly ErrorCode[] {
  return [...new Set([...commonErrors(row), ...row.errors])];
}
