import { scopes } from "./access.ts";
import { errors, type ErrorCode } from "./errors.ts";
import { limits, type ApiLimits } from "./limits.ts";
import { routes, type Result } from "./routes.ts";
import { changes, errorsOf, type Row } from "./table.ts";

/** Returns the API's capabilities, derived from its rows. `real` holds limits that differ from the defaults. */
export function capabilities(version: string, real: Partial<ApiLimits> = {}): Result<"self-description.capabilities"> {
  return {
    version,
    scopes: [...scopes],
    routes: routes.map(describeRoute),
    error_codes: (Object.keys(errors) as ErrorCode[]).map((code) => ({ code, ...errors[code] })),
    limits: { ...limits, ...real },
  };
}

function describeRoute(row: Row) {
  const { name, method, path, access, scope, further_scopes, approval, waits, summary } = row;
  const takes = { idempotency_key: changes(row), dry_run: changes(row) };
  return {
    name,
    method,
    path,
    access,
    scope,
    further_scopes: [...further_scopes],
    approval,
    waits,
    ...takes,
    summary,
    errors: [...errorsOf(row)],
  };
}
