import { errors, type ErrorBody, type ErrorCode, type ErrorDefinition } from "../contract/errors.ts";
import { Refused } from "../features/context.ts";
import { isCollision } from "../store/database.ts";
import { PartMissing } from "../kit/part-missing.ts";
import { outageOf } from "../kit/outage.ts";
import { nextCallOf } from "./next-call.ts";

/** An error as a response: everything that leaves the server, and whether the operator needs to know. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
  /** `fault`: a defect of ours, to be investigated. `outage`: a dependency is temporarily unavailable. `refusal`: the caller must act. */
  readonly kind: "fault" | "outage" | "refusal";
}

/** Returns the response for anything thrown; `params` are the request's path parameters. Contains none of a fault's own text. */
export function answerTo(error: unknown, params?: unknown): ErrorAnswer {
  if (error instanceof Refused) return refusalAnswer(error, params);
  if (error instanceof PartMissing)
    return {
      ...refusalAnswer(new Refused("unavailable", { error: error.summary, hint: error.hint })),
      kind: "outage",
    };
  const { code = "", statusCode = 500 } = (error ?? {}) as { code?: string; statusCode?: number };
  if (isCollision(error)) return refusalAnswer(collided);
  if (code.startsWith("FST_")) return refusalAnswer(frameworkRefusal(code, statusCode));
  const outage = outageOf(error);
  if (outage === undefined) return refusalAnswer(new Refused("internal"));
  return { ...refusalAnswer(outageRefusals[outage]), kind: "outage" };
}

// After a repetition: see `isCollision`.
const collided = new Refused("conflict", {
  error: "Other changes of the same object were made at the same moment, so this one was not.",
  hint: "Send the request again.",
});

const outageRefusals = {
  disk_full: new Refused("storage_full"),
  disk_read_only: new Refused("unavailable", {
    error: "The platform cannot write to its disk; its operator has to repair it.",
  }),
  away: new Refused("unavailable"),
};

const retryAfterSeconds = 5;

const extraHeaders: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, string>>>>> = {
  unauthorized: { "www-authenticate": "Bearer" },
  unavailable: { "retry-after": String(retryAfterSeconds) },
  edge_unavailable: { "retry-after": String(retryAfterSeconds) },
  deploy_in_progress: { "retry-after": String(retryAfterSeconds) },
};

function frameworkRefusal(code: string, statusCode: number): Refused {
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return new Refused("payload_too_large");
  if (code === "FST_ERR_BAD_URL") return new Refused("invalid_request", { error: "The URL is malformed." });
  return statusCode < 500
    ? new Refused("invalid_request", { error: "The request is malformed." })
    : new Refused("internal");
}

function refusalAnswer({ code, more }: Refused, params?: unknown): ErrorAnswer {
  const definition: ErrorDefinition = errors[code];
  const {
    error = definition.meaning,
    hint = definition.hint,
    details,
    approval,
    next = nextCallOf(code, params),
  } = more;
  const body: ErrorBody = {
    error,
    code,
    ...(hint === undefined || hint === "" ? {} : { hint }),
    ...(details === undefined ? {} : { details }),
    ...(more.foreign ? { foreign: true } : {}),
    ...(approval === undefined ? {} : { approval }),
    ...(next === undefined ? {} : { next }),
  };
  const retry = more.retryAfterSeconds === undefined ? {} : { "retry-after": String(more.retryAfterSeconds) };
  const headers = { ...extraHeaders[code], ...retry };
  return { status: definition.status, headers, body, kind: code === "internal" ? "fault" : "refusal" };
}
