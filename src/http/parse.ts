import { z } from "zod";
import { nameParameter, type Row } from "../contract/table.ts";
import { Refused } from "../features/context.ts";

export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

export type ParsedInput = RawInput;

/** Validates the input against the row's schemas. Refuses with `not_found` for an impossible name in the path, else `invalid_request`. */
export function parseInput(row: Row, raw: RawInput): ParsedInput | Refused {
  const params = row.params.safeParse(raw.params);
  if (isImpossible(raw.params) || params.error?.issues.some((issue) => issue.path[0] === nameParameter(row)))
    return new Refused("not_found");
  const query = row.query.safeParse(raw.query);
  const given = row.upload !== null ? {} : withoutOrganization(raw.body);
  const body: Parsed = (row.body ?? noBody).safeParse(given);
  if (params.success && query.success && body.success)
    return {
      params: params.data,
      query: query.data,
      body: row.upload !== null ? (raw.body ?? []) : row.body && body.data,
    };
  const issues = [params, query, body].flatMap((parsed: Parsed) => (parsed.success ? [] : parsed.error.issues));
  return invalid(issues.slice(0, mostDetails).flatMap(detailsOf).slice(0, mostDetails));
}

/** How many problems a refusal names: a body has room for tens of thousands, and their text is a hundred times its size. */
const mostDetails = 100;

const noBody = z.strictObject({});

/** Returns the body as an object, empty when there was none. Drops an organization in it, which has no effect; refuses other fields. */
function withoutOrganization(body: unknown): unknown {
  if (body === undefined) return {};
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  const { org: _, org_id: _id, organization: _name, organization_id: _organizationId, ...rest } = body as Fields;
  return rest;
}

type Fields = Readonly<Record<string, unknown>>;

// PostgreSQL's text type can't hold NUL, so no object has such a name.
function isImpossible(params: unknown): boolean {
  return Object.values(params as Record<string, string>).some((value) => value.includes("\0"));
}

type Detail = { readonly path: string; readonly message: string };
type Parsed =
  | { readonly success: true; readonly data: unknown }
  | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } };
type Issue = Pick<z.core.$ZodIssue, "path" | "message"> & {
  readonly code?: string | undefined;
  readonly keys?: readonly string[];
};

function detailsOf(issue: Issue): Detail[] {
  const path = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const prefix = path === "" ? "" : `${path}.`;
    return (issue.keys ?? []).slice(0, mostDetails).map((key) => ({
      path: `${prefix}${key.slice(0, 100)}`,
      message: "is not a field of this request",
    }));
  }
  if (issue.code === "invalid_type" && issue.message.endsWith("received undefined"))
    return [{ path, message: "is required" }];
  return [{ path, message: issue.message.replace(/^(?:Invalid \w+|Too \w+): /, "") }];
}

function invalid(details: readonly Detail[]): Refused {
  const [first] = details;
  const error =
    first && first.path !== ""
      ? `${first.path}: ${first.message}`
      : "The request's body must be a JSON object with the fields of this request.";
  return new Refused("invalid_request", { error, details: [...details] });
}
