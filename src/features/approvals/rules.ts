import { createHash, randomBytes } from "node:crypto";
import { mask } from "../../contract/env.ts";
import { canonicalJson } from "../../kit/canonical-json.ts";
import { visible } from "../../kit/visible.ts";
import { wordsOf } from "./words.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** How long each state lasts; see "Approvals" in the semantics. */
export const durations = { pendingMs: 24 * hourMs, approvedMs: hourMs, coolDownMs: 10 * minuteMs } as const;

/** The properties that identify a request: two requests are the same if all of them match. */
export interface SameRequest {
  readonly org_id: string;
  readonly token_id: string;
  readonly method: string;
  readonly route: string;
  /** Ids of the resources in the path, outermost first. Unlike a name, an id is never reused for another resource. */
  readonly resources: readonly string[];
  /** The remaining path parameters. */
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** Returns the SHA-256 of the request's canonical JSON. */
export function fingerprintOf(request: SameRequest): Buffer {
  const { org_id, token_id, method, route, resources, params, query, body } = request;
  return sha256(canonicalJson({ org_id, token_id, method, route, resources, params, query, body }));
}

/** Returns a text that identifies what a request is about: the same for the same resources and path, whatever the body. */
export function resourceOf({ resources, params }: Pick<SameRequest, "resources" | "params">): string {
  return canonicalJson({ resources, params });
}

const linkPattern = /^[\w-]{43}$/;

/** Creates a link's secret of 256 random bits, and the hash by which the link is looked up. */
export function newLink(): { readonly secret: string; readonly hash: Buffer } {
  const secret = randomBytes(32).toString("base64url");
  return { secret, hash: sha256(secret) };
}

export function linkHashOf(secret: string): Buffer | undefined {
  return linkPattern.test(secret) ? sha256(secret) : undefined;
}

// Longer than any command line or list of scopes: a person must see everything that they approve.
const mostShownCharacters = 64 * 1024;

/** Formats a request's body for people, without the values of secret fields, cut to a maximum length. */
export function shownBody(body: unknown, secrets: readonly string[]): string | null {
  if (body === undefined || body === null) return null;
  const text = JSON.stringify(body, (field, value: unknown) => hidden(field, value, secrets), 2);
  return text.length > mostShownCharacters ? `${text.slice(0, mostShownCharacters)}\n… (cut)` : text;
}

function hidden(field: string, value: unknown, secrets: readonly string[]): unknown {
  return secrets.includes(field) && value !== null ? mask : value;
}

/** The part of a request that is stored for people. */
export interface StoredRequest {
  readonly summary: string;
  readonly body: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

export function requestOf({ request }: { readonly request: unknown }): StoredRequest {
  return request as StoredRequest;
}

/** Returns what is asked for, as an order of one line, without a full stop. */
export function summaryOf(row: { readonly route: string; readonly target: string | null; readonly request: unknown }) {
  const { summary, detail } = requestOf(row);
  return visible(wordsOf(row.route)?.order({ target: row.target, detail }) ?? summary);
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
