import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refused, type Caller, type HandlerPlatform } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { Vault } from "../store/vault.ts";
import type { Authenticator } from "./authenticator.ts";
import { openCookie, readCookie, sealCookie, writeCookie } from "./cookies.ts";
import * as people from "../features/people/people.ts";
import { createSignInLink, peekSignInLink, redeemSignInLink } from "../features/tokens/tokens.ts";
import { isFromThisPage } from "./own-form.ts";
import type { RateLimiter } from "./rate-limiter.ts";

export interface SignIn {
  readonly platform: Pick<HandlerPlatform, "db" | "wakeups">;
  readonly vault: Vault;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly limiter: RateLimiter;
  /** Returns the current URL, which changes with the first certificate. */
  readonly controlUrl: () => string;
}

/** Returns the address that signs in by a link's code: in the fragment, so that it reaches neither server logs nor a Referer. */
export function signInUrl(controlUrl: string, code: string): string {
  return `${controlUrl}/sign-in#${code}`;
}

/**
 * Adds `/session`, where a browser gets its token, also after a reload. The cookie never authenticates the API: it holds the sealed token,
 * and only this path exchanges it for the token, which the page keeps in memory and sends like any other client. One page below this path
 * accepts the cookie itself: the decision page of an approval.
 */
export function addSignIn(app: FastifyInstance, signIn: SignIn): void {
  app.post("/session", (request, reply) => open(signIn, request, reply));
  app.post("/session/resume", (request, reply) => resume(signIn, request, reply));
  app.post("/session/link", (request, reply) => makeLink(signIn, request, reply));
  app.delete("/session", async (request, reply) => {
    requireOwnPage(signIn, request);
    const text = tokenOfCookie(signIn, request);
    if (text !== undefined) await people.endSession(signIn.platform, text);
    return answer(
      reply.header("set-cookie", writeCookie(place, { value: "", ms: 0, isSecure: isSecureOrigin(request) })),
      204,
    );
  });
}

async function open(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  requireOwnPage(signIn, request);
  const { code, token: given, ...how } = (request.body ?? {}) as OpenBody;
  const question =
    typeof code === "string" && how.agreed !== true ? await questionBefore(signIn, request, code, how) : null;
  if (question !== null) return answer(reply, 200, { question });
  const token = typeof code === "string" ? await redeem(signIn, request, code) : given;
  if (typeof token !== "string") throw refusedSignIn(signIn, request, "The link was used or has expired.");
  await requireToken(signIn, request, token);
  return startSession(signIn, request, reply, token);
}

/** Returns the token of a link's code, or a new session of the person whose link it is; undefined when the code is not valid any more. */
async function redeem({ platform, vault }: SignIn, request: FastifyRequest, code: string) {
  if (!code.startsWith(people.personLinkPrefix)) return redeemSignInLink(platform.db, code);
  const person = await people.readPersonLink({ db: platform.db, vault }, code);
  if (person === undefined || !(await people.usePersonLink(platform.db, code))) return undefined;
  return people.beginSession(platform, person.id, { method: "link", fresh_at: null, browser: browserOf(request) });
}

export function browserOf(request: FastifyRequest): people.Browser {
  return { user_agent: request.headers["user-agent"] ?? "", address: request.clientAddress };
}

interface OpenBody {
  readonly code?: unknown;
  readonly token?: unknown;
  /** Whether the person has confirmed the question. */
  readonly agreed?: unknown;
  /** Whether the person did not open the link directly, as a program or the address bar does. */
  readonly elsewhere?: unknown;
}

/**
 * Returns what the page asks before a link signs in: a link of another organization must not replace a session, or start one from a foreign
 * page, unnoticed, because what the person types next would go there. Null if there is nothing to ask, or the code is not valid.
 */
async function questionBefore(signIn: SignIn, request: FastifyRequest, code: string, { elsewhere }: OpenBody) {
  if (code.startsWith(people.personLinkPrefix)) return questionOfPerson(signIn, request, code);
  const token = await peekSignInLink(signIn.platform.db, code);
  const next = token === undefined ? undefined : (await signIn.authenticator.authenticate(token))?.caller;
  if (next === undefined) return null;
  const present = await sessionOf(signIn, request);
  const isOther = present !== undefined && present.token_id !== next.token_id;
  if (!isOther && (elsewhere !== true || present !== undefined)) return null;
  return { organization: next.org_name, token: next.token_name, present: present?.org_name ?? null };
}

/** Always asks: who opens the link acts under that person's name from then on. */
async function questionOfPerson(signIn: SignIn, request: FastifyRequest, code: string) {
  const person = await people.readPersonLink({ db: signIn.platform.db, vault: signIn.vault }, code);
  const present = await sessionOf(signIn, request);
  return person === undefined ? null : { person: person.name, present: present?.org_name ?? null };
}

/** Returns who is signed in in the browser that sent this request, which must be below `/session`. Suspended organizations have no session. */
export async function sessionOf(
  signIn: Pick<SignIn, "vault" | "authenticator" | "controlUrl">,
  request: FastifyRequest,
): Promise<Caller | undefined> {
  const { authenticator } = signIn;
  const token = tokenOfCookie(signIn, request);
  const found = token === undefined ? undefined : await authenticator.authenticate(token);
  return found?.suspended === false ? found.caller : undefined;
}

async function resume(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  requireOwnPage(signIn, request);
  const token = tokenOfCookie(signIn, request);
  // Not an error: the page learns that there is no session.
  if (token === undefined) return answer(reply, 200, { token: null });
  await people.keepSession(signIn.platform.db, token);
  return startSession(signIn, request, reply, token);
}

/** For `berth open --dashboard`: creates a link for a caller that already has the token. */
async function makeLink(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
  await requireToken(signIn, request, token);
  const code = await createSignInLink(signIn.platform.db, token);
  return answer(reply, 201, { url: signInUrl(signIn.controlUrl(), code) });
}

async function requireToken(signIn: SignIn, request: FastifyRequest, token: string): Promise<void> {
  const found = await signIn.authenticator.authenticate(token);
  if (found === undefined) throw refusedSignIn(signIn, request, "This token is not valid here, or no longer.");
}

/** Counts a refused attempt, and returns its error. */
export function refusedSignIn({ limiter }: SignIn, { clientAddress }: FastifyRequest, error: string): Refused {
  return limiter.count("refusedPerMinute", addressKey(clientAddress)).refused ?? new Refused("unauthorized", { error });
}

/** Answers with a token's text, and keeps it for this browser. */
export function startSession(
  signIn: SignIn,
  request: FastifyRequest,
  reply: FastifyReply,
  token: string,
): FastifyReply {
  const kept = sessionCookie(signIn, token, isSecureOrigin(request));
  return answer(reply.header("set-cookie", kept), 200, { token });
}

const tokenSessionMs = 12 * 3_600_000;

const place = { name: "berth_session", path: "/session", sameSite: "Strict" } as const;

const isSecureOrigin = ({ headers }: FastifyRequest) => headers.origin?.startsWith("https:") === true;

/** Returns the cookie that keeps a token's text for a browser: a person's session for as long as it may stay unused. */
export function sessionCookie({ vault }: Pick<SignIn, "vault">, token: string, isSecure: boolean): string {
  const ms = token.startsWith("berth_s_") ? people.sessionIdleMs : tokenSessionMs;
  return writeCookie(place, { value: sealCookie(vault, place.name, { content: { token }, ms }), ms, isSecure });
}

/** Returns the token that this browser is signed in with; it may have ended. */
export function tokenOfCookie(
  signIn: Pick<SignIn, "vault" | "controlUrl">,
  request: FastifyRequest,
): string | undefined {
  const value = readCookie(place, request, signIn.controlUrl());
  return value === undefined
    ? undefined
    : openCookie<{ readonly token: string }>(signIn.vault, place.name, value)?.token;
}

/** Refuses requests from other pages: a page of another origin can't set this header, and browsers report the origin truthfully. */
export function requireOwnPage({ controlUrl }: Pick<SignIn, "controlUrl">, request: FastifyRequest): void {
  if (!isFromThisPage(request, controlUrl()) || request.headers["x-berth-dashboard"] !== "1")
    throw new Refused("forbidden", { error: "Sign-in works only from this platform's dashboard." });
}

export function answer(reply: FastifyReply, status: number, body?: object): FastifyReply {
  reply.code(status).headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
  return body === undefined ? reply.send() : reply.type("application/json; charset=utf-8").send(JSON.stringify(body));
}
