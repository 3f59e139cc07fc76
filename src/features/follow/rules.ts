import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { FollowProvider } from "../../contract/follow.ts";
import type { OutgoingRequest } from "../../ports/outgoing-http.ts";
import { hasPreviews, isBranchName } from "../previews/previews.ts";
import { sshFingerprint } from "../../kit/ssh-fingerprint.ts";
import { webhookHeaders } from "../../kit/standard-webhooks.ts";
import { parseJson } from "../../kit/parse-json.ts";

/** A webhook delivery as received, not yet parsed. */
export interface HookRequest {
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** The meaning of a delivery: a fetch, or none with the reason. `signed` is false for deliveries that anybody could have sent. */
export type HookReading = { readonly event: string; readonly commit: string | null } &
  /** `preview`: the branch, if it is not the followed one. */
  (
    | { readonly outcome: "fetch"; readonly preview: string | null }
    | { readonly outcome: "ignored"; readonly signed: boolean; readonly reason: string }
  );

/** The event of a delivery that requests what is fetched only for a plan. */
export const planEvent = "plan";

export interface WantedBranches {
  readonly branch: string;
  /** Patterns of branches that get a preview. */
  readonly previews: readonly string[] | null;
  /** The branch of the project's own repository that holds what is deployed. */
  readonly deploy_branch: string | null;
}

/** Parses a delivery of GitHub, GitLab, Gitea or a compatible host. Uses it only as a hint that the branch may have moved. */
export function readHook(secret: string, wanted: WantedBranches, request: HookRequest): HookReading {
  const { branch } = wanted;
  const event = eventOf(request);
  if (!isSigned(secret, request)) {
    const reason = "Its signature is missing or wrong: the webhook must have the secret that `berth follow` showed.";
    return { event, commit: null, outcome: "ignored", signed: false, reason };
  }
  const ignored = (reason: string) => ({ event, commit: null, outcome: "ignored", signed: true, reason }) as const;
  if (!/^push(?: hook)?$/i.test(event)) return ignored(`It reports "${event}", not a push.`);
  const payload = parseJson(request.body.toString("utf8"));
  if (typeof payload !== "object" || payload === null)
    return ignored("Its body is not JSON: set the content type of the webhook to application/json.");
  const { ref, after } = payload as { readonly ref?: unknown; readonly after?: unknown };
  const commit = typeof after === "string" && /^[0-9a-f]{40}$/.test(after) ? after : null;
  if (ref !== `refs/heads/${branch}`) {
    const preview = previewIn(ref, wanted);
    if (preview === null)
      return ignored(`It reports a push to ${printable(ref) || "another ref"}; the project follows ${branch}.`);
    return { event, commit: /^0+$/.test(commit ?? "") ? null : commit, outcome: "fetch", preview };
  }
  if (commit !== null && /^0+$/.test(commit)) return ignored("The branch was deleted: the live deployment stays.");
  return { event, commit, outcome: "fetch", preview: null };
}

/** Returns the branch that a ref names if the project wants a preview of it. */
function previewIn(ref: unknown, { previews, deploy_branch }: WantedBranches): string | null {
  const name = /^refs\/heads\/(.{1,250})$/.exec(typeof ref === "string" ? ref : "")?.[1];
  const isWanted = name !== undefined && isBranchName(name) && name !== (deploy_branch ?? "main");
  return isWanted && hasPreviews(previews, name) ? name : null;
}

function header({ headers }: HookRequest, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}

function eventOf(request: HookRequest): string {
  const names = ["x-github-event", "x-gitea-event", "x-gitlab-event"];
  const event = names.map((name) => header(request, name)).find((each) => each !== "") ?? "";
  return printable(event).slice(0, 60) || "unknown";
}

/**
 * Returns whether one of the known signatures is valid: GitHub's and Gitea's HMAC of the body, GitLab's token, or its signing token in the
 * form of Standard Webhooks. GitLab's token authenticates only the sender, which is enough, because the body is not trusted anyway.
 */
function isSigned(secret: string, request: HookRequest): boolean {
  const hmac = createHmac("sha256", secret).update(request.body).digest("hex");
  if (isSame(header(request, "x-hub-signature-256"), `sha256=${hmac}`)) return true;
  if (isSame(header(request, "x-gitea-signature"), hmac)) return true;
  if (isSame(header(request, "x-gitlab-token"), secret)) return true;
  const id = header(request, "webhook-id");
  const timestamp = Number(header(request, "webhook-timestamp"));
  const wanted =
    webhookHeaders(secret, { id, timestamp, body: request.body.toString("utf8") })["webhook-signature"] ?? "";
  return header(request, "webhook-signature")
    .split(" ")
    .some((each) => isSame(each, wanted));
}

// Compares digests, because `timingSafeEqual` needs equal lengths.
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

function printable(text: unknown): string {
  if (typeof text !== "string") return "";
  return text
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, 200);
}

/** Guesses the kind of a repository's host from well-known names. */
export function providerOf(url: string): FollowProvider {
  const { hostname } = new URL(url);
  if (hostname === "github.com" || hostname === "ssh.github.com") return "github";
  if (/(?:^|\.)gitlab\./.test(hostname)) return "gitlab";
  if (/^(?:codeberg\.org|.*\bgitea\b.*|.*\bforgejo\b.*)$/.test(hostname)) return "gitea";
  return "other";
}

const minuteMs = 60_000;

/** Returns the pause after this many consecutive failed fetches, in milliseconds. */
export function retryAfterMs(failures: number, pollMs: number): number {
  return Math.min(15_000 * 4 ** Math.min(failures - 1, 6), Math.max(pollMs, 5 * minuteMs));
}

/** Parses a host key: a fingerprint, or a public key as a line of known_hosts(5), with or without its host. */
export function readHostKey(text: string): { readonly pin: string; readonly line: string | null } | null {
  const words = text.trim().split(/\s+/);
  const [pin = ""] = words;
  if (words.length === 1 && /^SHA256:[A-Za-z0-9+/]{43}$/.test(pin)) return { pin, line: null };
  const at = words.findIndex((word) => keyTypes.test(word));
  const [type, key = ""] = words.slice(at);
  // The decoded key starts with the length and the name of its type.
  const named = Buffer.from(key, "base64").subarray(4).toString("latin1");
  if (at < 0 || at > 1 || type === undefined || !/^[A-Za-z0-9+/]{50,2000}={0,2}$/.test(key) || !named.startsWith(type))
    return null;
  return { pin: sshFingerprint(key), line: `repository ${type} ${key}\n` };
}

const keyTypes = /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

/** The commit status that a host shows for a build. */
export interface CommitStatus {
  readonly url: string;
  readonly provider: FollowProvider;
  readonly commit: string;
  readonly context: string;
  readonly state: "pending" | "success" | "failure";
  readonly description: string;
  readonly targetUrl: string;
}

export function showsStatuses(provider: string): boolean {
  return provider !== "other";
}

export function statusRequest({ provider, ...status }: CommitStatus, token: string): HostRequest {
  const { url, commit, state, description, targetUrl: target_url } = status;
  const context = `berth/${status.context}`;
  const { api, headers } = hostApi({ provider, url }, token);
  const words = { pending: "running", success: "success", failure: "failed" };
  const body =
    provider === "gitlab"
      ? { state: words[state], name: context, description, target_url }
      : { state, context, description, target_url };
  return { url: `${api}/statuses/${commit}`, headers, body: JSON.stringify(body) };
}

/** A request to the API of a repository's host. */
export type HostRequest = Pick<OutgoingRequest, "method" | "url" | "headers" | "body">;

/** Returns the address of a repository in the API of its host, and the headers of each request. */
export function hostApi({ provider, url }: Pick<CommitStatus, "provider" | "url">, token: string) {
  const { hostname, host, protocol, pathname } = new URL(url);
  const path = pathname.replace(/^\/+|\/+$|\.git\/?$/g, "");
  // The port of an SSH address is not the API's port.
  const origin = `https://${protocol === "https:" ? host : hostname}`;
  const isGithub = provider === "github";
  const githubs = /(?:^|\.)github\.com$/.test(hostname) ? "https://api.github.com" : `${origin}/api/v3`;
  const api =
    provider === "gitlab"
      ? `${origin}/api/v4/projects/${encodeURIComponent(path)}`
      : `${isGithub ? githubs : `${origin}/api/v1`}/repos/${path}`;
  const authorization: Readonly<Record<string, string>> =
    provider === "gitlab" ? { "private-token": token } : { authorization: `${isGithub ? "Bearer" : "token"} ${token}` };
  const types = { "content-type": "application/json", accept: "application/json", "user-agent": "berth" };
  return { api, owner: path.split("/")[0] ?? "", headers: { ...authorization, ...types } };
}
