import { createHash, randomBytes } from "node:crypto";
import { canonicalJson } from "../../kit/canonical-json.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** How long each state lasts. Semantics, "Approvals". */
export const durations = { pendingMs: 24 * hourMs, approvedMs: hourMs, coolDownMs: 10 * minuteMs } as const;

/** Everything that makes two requests the same one. */
export interface SameRequest {
  readonly org_id: string;
  readonly token_id: string;
  readonly method: string;
  /** The row's name. */
  readonly route: string;
  /** Ids of what the path names, from the outside in; they outlive a name that comes to mean something else. */
  readonly resources: readonly string[];
  /** What the path says beyond that. */
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** SHA-256 of the request's canonical JSON. */
export function fingerprintOf(request: SameRequest): Buffer {
  const { org_id, token_id, method, route, resources, params, query, body } = request;
  return sha256(canonicalJson({ org_id, token_id, method, route, resources, params, query, body }));
}

/** What a request is about, as text: the same for the same row, thing and names, whatever the body. */
export function resourceOf({ resources, params }: Pick<SameRequest, "resources" | "params">): string {
  return canonicalJson({ resources, params });
}

const linkPattern = /^[\w-]{43}$/;

/** A new link's secret, 256 random bits, and the hash by which it is found again. */
export function newLink(): { readonly secret: string; readonly hash: Buffer } {
  const secret = randomBytes(32).toString("base64url");
  return { secret, hash: sha256(secret) };
}

/** The hash of a link's secret; undefined for what cannot be one. */
export function linkHashOf(secret: string): Buffer | undefined {
  return linkPattern.test(secret) ? sha256(secret) : undefined;
}

const mostShownCharacters = 4000;

/** A request's body as people are shown it. */
export function shownBody(body: unknown): string | null {
  if (body === undefined || body === null) return null;
  const text = JSON.stringify(body, null, 2);
  return text.length > mostShownCharacters ? `${text.slice(0, mostShownCharacters)}\n… (cut)` : text;
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
