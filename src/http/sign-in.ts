import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { Refused, type Caller } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { Vault } from "../store/vault.ts";
import type { Authenticator } from "./authenticator.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** What signing in to the dashboard depends on. */
export interface SignIn {
  readonly vault: Vault;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly limiter: RateLimiter;
  /** Returns the current URL, which changes with the first certificate. */
  readonly controlUrl: () => string;
  readonly links: SignInLinks;
}

/** One-time sign-in links. They exist only in this process's memory and are lost at a restart. */
export interface SignInLinks {
  /** Creates a URL that signs in with this token, once and within 15 minutes. */
  create(token: string): string;
  /** Returns the token behind a link's code and invalidates the code. */
  redeem(code: string): string | undefined;
}

const linkMs = 15 * 60_000;
const mostLinks = 1000;

/** Creates the store of sign-in links. `baseUrl` returns the control plane's current URL. */
export function createSignInLinks(baseUrl: () => string): SignInLinks {
  const tokens = new LRUCache<string, string>({ max: mostLinks, ttl: linkMs });
  return {
    create(token) {
      const code = randomBytes(32).toString("base64url");
      tokens.set(code, token);
      // In the URL's fragment, so that it reaches neither server logs nor a Referer.
      return `${baseUrl()}/sign-in#${code}`;
    },
    redeem(code) {
      const token = tokens.get(code);
      tokens.delete(code);
      return token;
    },
  };
}

/**
 * Adds `/session`, where a browser gets its token, also after a reload. The cookie never authenticates the API: it holds the sealed token,
 * is sent only to this path, and is exchanged here for the token, which the page keeps in memory and sends like any other client. Below the
 * path stands one page that takes the cookie itself: the one that decides an approval.
 */
export function addSignIn(app: FastifyInstance, signIn: SignIn): void {
  app.post("/session", (request, reply) => open(signIn, request, reply));
  app.post("/session/resume", (request, reply) => resume(signIn, request, reply));
  app.post("/session/link", (request, reply) => makeLink(signIn, request, reply));
  app.delete("/session", (request, reply) => {
    requireOwnPage(signIn, request);
    return answer(reply.header("set-cookie", cookie(request, "", 0)), 204);
  });
}

async function open(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  requireOwnPage(signIn, request);
  const { code, token: given } = (request.body ?? {}) as { readonly code?: unknown; readonly token?: unknown };
  const token = typeof code === "string" ? signIn.links.redeem(code) : given;
  if (typeof token !== "string") throw refusedSignIn(signIn, request, "The link was used or has expired.");
  await requireToken(signIn, request, token);
  return startSession(signIn, request, reply, token);
}

/** Returns who is signed in in the browser that sent this request, which must be below `/session`. Suspended organizations have no session. */
export async function sessionOf(
  { vault, authenticator }: Pick<SignIn, "vault" | "authenticator">,
  { headers }: FastifyRequest,
): Promise<Caller | undefined> {
  const token = tokenOfCookie(vault, headers.cookie);
  const found = token === undefined ? undefined : await authenticator.authenticate(token);
  return found?.suspended === false ? found.caller : undefined;
}

async function resume(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  requireOwnPage(signIn, request);
  const token = tokenOfCookie(signIn.vault, request.headers.cookie);
  // Not an error: this tells the page that there is no session.
  if (token === undefined) return answer(reply, 200, { token: null });
  return startSession(signIn, request, reply, token);
}

/** For `berth open --dashboard`: creates a link for a caller that already has the token. */
async function makeLink(signIn: SignIn, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
  await requireToken(signIn, request, token);
  return answer(reply, 201, { url: signIn.links.create(token) });
}

async function requireToken(signIn: SignIn, request: FastifyRequest, token: string): Promise<void> {
  const found = await signIn.authenticator.authenticate(token);
  if (found === undefined) throw refusedSignIn(signIn, request, "This token is not valid here, or no longer.");
}

function refusedSignIn({ limiter }: SignIn, { clientAddress }: FastifyRequest, error: string): Refused {
  return limiter.count("refusedPerMinute", addressKey(clientAddress)).refused ?? new Refused("unauthorized", { error });
}

function startSession({ vault }: SignIn, request: FastifyRequest, reply: FastifyReply, token: string): FastifyReply {
  const sealed = vault.seal(sealedFor, cookieName, JSON.stringify({ token, until: Date.now() + sessionMs }));
  return answer(reply.header("set-cookie", cookie(request, sealed.toString("base64url"), sessionMs / 1000)), 200, {
    token,
  });
}

const cookieName = "berth_session";
const sealedFor = "dashboard";
const sessionMs = 12 * 3_600_000;

function cookie(request: FastifyRequest, value: string, seconds: number): string {
  const secure = String(request.headers.origin).startsWith("https:") ? "; Secure" : "";
  return `${cookieName}=${value}; Path=/session; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

function tokenOfCookie(vault: Vault, header: string | undefined): string | undefined {
  const value = new RegExp(`(?:^|; *)${cookieName}=([\\w-]+)`).exec(header ?? "")?.[1];
  if (value === undefined) return undefined;
  try {
    const opened = vault.open(sealedFor, cookieName, Buffer.from(value, "base64url"));
    const { token, until } = JSON.parse(opened) as { readonly token: string; readonly until: number };
    return until > Date.now() ? token : undefined;
  } catch {
    return undefined;
  }
}

/** Refuses requests from other pages: a page of another origin can't set this header, and browsers report the origin truthfully. */
function requireOwnPage({ controlUrl }: SignIn, { headers }: FastifyRequest): void {
  const origin = URL.parse(headers.origin ?? "");
  const isOwn = origin !== null && (origin.origin === new URL(controlUrl()).origin || origin.host === headers.host);
  if (!isOwn || headers["x-berth-dashboard"] !== "1")
    throw new Refused("forbidden", { error: "Sign-in works only from this platform's dashboard." });
}

function answer(reply: FastifyReply, status: number, body?: object): FastifyReply {
  reply.code(status).headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
  return body === undefined ? reply.send() : reply.type("application/json; charset=utf-8").send(JSON.stringify(body));
}
