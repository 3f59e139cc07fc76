import { z } from "zod";
import type { Access, Scope } from "./access.ts";
import type { ErrorCode } from "./errors.ts";

/** One route of the API, as data: the single source of the server, the client, the documents and the tests. */
export interface Row {
  /** `<noun>.<verb>`. */
  readonly name: `${string}.${string}`;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With `:param` segments. */
  readonly path: `/v1/${string}`;
  /** What the path names. The lookup comes before any complaint about the rest of the request. */
  readonly names: Named | null;
  /** The handler receives the project that the path names as `ctx.project`; a deleted one is refused with `project_deleted`. */
  readonly living: boolean;
  readonly access: Access;
  /** Null for rows that every token may call. */
  readonly scope: Scope | null;
  /** Asked for as well, where the row hands on rights of other nouns. */
  readonly further_scopes: readonly Scope[];
  /** A token in approval mode must wait for a human here. */
  readonly approval: boolean;
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly body: z.ZodObject | null;
  /** The body is a file of another kind than JSON, which the handler reads as it comes. */
  readonly upload: boolean;
  /** How large a body may be; null: as large as any. */
  readonly body_bytes: number | null;
  /** Null when there is no body to answer with (204). Fields that are not declared never leave the server. */
  readonly result: z.ZodType | null;
  /** The field of the result whose text is shown this once: it is stored nowhere, and null in the answer to a repetition. */
  readonly secret: string | null;
  /** The usual status first; a handler may choose one of the others. */
  readonly success: readonly [SuccessStatus, ...SuccessStatus[]];
  /** What this row may answer beyond the common errors. */
  readonly errors: readonly ErrorCode[];
  /** How a change appears in the activity list (`project.created`); null for rows that change nothing. */
  readonly activity: string | null;
  readonly summary: string;
  /** The handler commits its intent and then waits for the world. */
  readonly waits: boolean;
  /** A change of rights: this control plane forgets what it remembers of tokens after the commit and before the answer. */
  readonly changes_rights: boolean;
  /** The answer may take megabytes until its client has read it, so a token has few of them open at once. */
  readonly large: boolean;
  /** Where the query says `follow=true`, the answer is `text/event-stream`; the data of its events has the form of the result. */
  readonly streams: boolean;
  /** The same request with an upgrade to a WebSocket of the protocol `berth.tunnel.v1` carries bytes, instead of an answer. */
  readonly upgrades: boolean;
}

/**
 * The WebSocket protocol of rows that say `upgrades`: binary messages are the bytes, text messages are JSON objects with a `type`
 * beside them (`end`: no more bytes come from this side). The close frame's reason says why the tunnel ended.
 */
export const tunnelProtocol = "berth.tunnel.v1";

/**
 * Begins a protocol that a client offers beside `tunnelProtocol` and that ends with its token. Programs send an `Authorization` header;
 * a browser's WebSocket can send none.
 */
export const bearerProtocol = "berth.bearer.";

/** What a path can name. */
export type Named =
  | "project"
  | "build"
  | "backup"
  | "token"
  | "key"
  | "approval"
  | "organization"
  | "webhook"
  | "registry";

export type SuccessStatus = 200 | 201 | 204;

type Defaults = {
  names: null;
  living: false;
  further_scopes: readonly [];
  approval: false;
  params: typeof noFields;
  query: typeof noFields;
  body: null;
  upload: false;
  body_bytes: null;
  result: null;
  secret: null;
  errors: readonly [];
  activity: null;
  waits: false;
  changes_rights: false;
  large: false;
  streams: false;
  upgrades: false;
};
type Required = Pick<Row, "name" | "method" | "path" | "access" | "scope" | "success" | "summary">;
type Optional = Partial<Pick<Row, keyof Defaults>>;

const noFields = z.object({});
const defaults: Defaults = {
  names: null,
  living: false,
  further_scopes: [],
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
  streams: false,
  upgrades: false,
};

/** Writes a row down, with everything left out at its default: no parameters, no body, no result, no further errors. */
export function row<const R extends Required & Optional>(given: R): Omit<Defaults, keyof R> & R {
  return { ...defaults, ...given };
}

/** The slug, id or host in the path of the thing that the row names; undefined for a path that names none. */
export function nameOf(row: Pick<Row, "names">, params: unknown): string | undefined {
  const name = nameParameter(row);
  return name === undefined ? undefined : (params as Readonly<Record<string, string>>)[name];
}

/** That parameter of the path. */
export function nameParameter({ names }: Pick<Row, "names">): "slug" | "id" | "host" | undefined {
  if (names === null) return undefined;
  if (names === "registry") return "host";
  return names === "project" || names === "organization" ? "slug" : "id";
}

/** Whether the path names the organization whose project is meant, as routes of the operator may. */
export function namesOrganization({ params }: Pick<Row, "params">): boolean {
  return "org" in params.shape;
}

/**
 * Whether a row changes something: it counts as a write, and takes an Idempotency-Key and `?dry_run=true`. One that asks for a reading
 * scope changes nothing: it is a POST only because of what it is sent.
 */
export function changes(row: Pick<Row, "method" | "scope">): boolean {
  return row.method !== "GET" && row.scope?.endsWith(":read") !== true;
}

/** Errors that any row may answer, whatever it does. */
function commonErrors(row: Row): readonly ErrorCode[] {
  const always: ErrorCode[] = [
    "invalid_request",
    "method_not_allowed",
    "payload_too_large",
    "rate_limited",
    "internal",
    "unavailable",
  ];
  // A body is read before anybody asks whether the row takes one.
  if (row.method !== "GET") always.push("unsupported_media_type");
  if (row.access === "public") return always;
  always.push("unauthorized", "org_suspended");
  if (row.access === "owner") always.push("owner_only");
  if (row.access === "operator") always.push("operator_only");
  if (row.scope !== null || row.further_scopes.length > 0) always.push("insufficient_scope");
  if (row.approval) always.push("approval_required", "approval_denied");
  if (changes(row)) always.push("idempotency_mismatch", "idempotency_in_progress");
  if (Object.keys(row.params.shape).length > 0) always.push("not_found");
  if (row.living) always.push("project_deleted");
  return always;
}

/** Everything that a row may answer with when it does not succeed, each code once. */
export function errorsOf(row: Row): readonly ErrorCode[] {
  return [...new Set([...commonErrors(row), ...row.errors])];
}
