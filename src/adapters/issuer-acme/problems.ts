import { AsyncLocalStorage } from "node:async_hooks";
import acme from "acme-client";
import type { OrderOutcome, OrderRefusal } from "../../ports/certificate-issuer.ts";

/** What an authority reported during one order; acme-client's errors carry only its text. */
export interface Observed {
  /** The response to a challenge is being published. */
  isPublishing?: boolean;
  /** The authority is validating a challenge. */
  isProving?: boolean;
  /** The problem type of RFC 8555 §6.7, without its URN prefix. */
  type?: string;
  detail?: string;
  status?: number;
  retryAfter?: string;
}

interface Problem {
  readonly type?: string;
  readonly detail?: string;
}

const prefix = "urn:ietf:params:acme:error:";
const current = new AsyncLocalStorage<Observed>();

acme.axios.interceptors.response.use((response) => {
  const observed = current.getStore();
  if (observed === undefined) return response;
  const data = response.data as (Problem & { readonly error?: Problem }) | undefined;
  const problem = data?.error ?? data;
  observed.status = response.status;
  if (problem?.type?.startsWith(prefix) !== true) return response;
  observed.type = problem.type.slice(prefix.length);
  observed.detail = problem.detail ?? "";
  observed.retryAfter = String(response.headers["retry-after"] ?? "");
  return response;
});

/** Runs one order and records the authority's problems separately from those of concurrent orders. */
export function observeProblems<T>(work: (observed: Observed) => Promise<T>): Promise<T> {
  const observed: Observed = {};
  return current.run(observed, () => work(observed));
}

export function refusalOf(error: unknown, observed: Observed): OrderOutcome {
  const said = observed.isPublishing === true ? "" : observed.detail;
  const detail = (said || (error as Error).message || String(error)).slice(0, 500);
  const not_before = laterThan(observed.retryAfter ?? "", detail);
  return { outcome: "refused", reason: reasonOf(observed), detail, not_before };
}

const reasons: Readonly<Record<string, OrderRefusal>> = {
  rateLimited: "rate_limited",
  caa: "caa",
  accountDoesNotExist: "account",
  serverInternal: "unreachable",
};

function reasonOf({ type, isPublishing = false, isProving = false, status = 0 }: Observed): OrderRefusal {
  if (isPublishing) return "publish";
  const known = reasons[type ?? ""];
  if (known !== undefined) return known;
  if (type === undefined) return status === 0 || status >= 500 || status < 400 ? "unreachable" : "rejected";
  if (isProving) return "challenge";
  // RFC 8555 §7.3.6: requests of a deactivated account are unauthorized, too.
  return type === "unauthorized" ? "account" : "rejected";
}

/** Returns the time from `Retry-After`, or from Let's Encrypt's sentence ("retry after 2025-01-02 03:04:05 UTC"). */
function laterThan(field: string, detail: string): Date | null {
  if (/^\d+$/.test(field)) return new Date(Date.now() + Number(field) * 1000);
  const said = /retry after (\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)/.exec(detail);
  const at = Date.parse(said === null ? field : `${said[1]}T${said[2]}Z`);
  return Number.isNaN(at) ? null : new Date(at);
}
