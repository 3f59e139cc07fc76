import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Refused, type HandlerPlatform } from "../features/context.ts";
import type { Authenticator } from "./authenticator.ts";
import { openCookie, readCookie, sealCookie, writeCookie, type CookiePlace } from "./cookies.ts";
import { escape, pageHeaders, renderContent } from "./decision-html.ts";
import { answerTo } from "./errors.ts";
import * as people from "../features/people/people.ts";
import { openProvider, type Provider } from "../features/providers/providers.ts";
import { createOidcClient, type Answered, type OidcClient } from "./oidc.ts";
import type * as oidc from "./oidc.ts";
import * as signIn from "./sign-in.ts";

export interface ProviderSignIn extends signIn.SignIn {
  readonly authenticator: Pick<Authenticator, "authenticate" | "forget">;
  readonly platform: Pick<HandlerPlatform, "db" | "wakeups" | "vault"> & {
    readonly ports: Pick<HandlerPlatform["ports"], "outgoingHttp">;
  };
}

type ProviderRequest = FastifyRequest<{ Params: { provider: string } }>;

/** Adds sign-in with an identity provider. The sealed cookie of the attempt must come back, so that no other site signs somebody in. */
export function addProviderSignIn(app: FastifyInstance, given: ProviderSignIn): void {
  const client = createOidcClient(given.platform.ports.outgoingHttp);
  app.post("/session/oidc/:provider", (request: ProviderRequest, reply) => start({ given, client }, request, reply));
  app.get("/session/oidc/:provider/callback", async (request: ProviderRequest, reply) => {
    // A navigation of the browser, so failures are pages.
    try {
      return await finish({ given, client }, request, reply);
    } catch (error) {
      const { status, body, kind } = answerTo(error);
      if (kind === "fault") throw error;
      return reply
        .code(status)
        .headers(pageHeaders(""))
        .type("text/html; charset=utf-8")
        .send(renderContent(problemPage(body.error), ""));
    }
  });
}

const problemPage = (error: string) => ({
  title: "You are not signed in",
  html: `<p>${escape(error)}</p><a class="back" href="/">Back to Berth</a>`,
  linksBack: false,
});

interface Parts {
  readonly given: ProviderSignIn;
  readonly client: OidcClient;
}

/** A path of this platform: a browser reads `//host` and `/\\host` as another site, and skips control characters. */
const ownPath = /^\/(?![/\\])[^\u0000-\u0020\\]*$/;

/** What the person wants with the provider's answer. */
const wish = z.discriminatedUnion("to", [
  z.object({ to: z.literal("sign-in"), next: z.string().regex(ownPath).max(2000).default("/") }),
  z.object({ to: z.literal("join"), code: z.string().min(1).max(200) }),
  /** Give the account that is signed in here another identity. */
  z.object({ to: z.literal("link") }),
  /** Prove that the person who is signed in here is there. */
  z.object({ to: z.literal("prove") }),
]);

interface Attempt extends oidc.Attempt {
  readonly provider: string;
  readonly to: z.infer<typeof wish>;
  /** Of the session that a `link` or `prove` is for. */
  readonly session: string | null;
  readonly startedAtMs: number;
}

const attemptMs = 10 * 60_000;
// Lax, because the callback is a navigation from another site.
const place: CookiePlace = { name: "berth_attempt", path: "/session/oidc", sameSite: "Lax" };

const callbackOf = ({ controlUrl }: ProviderSignIn, id: string) => `${controlUrl()}/session/oidc/${id}/callback`;
const isSecure = ({ controlUrl }: ProviderSignIn) => controlUrl().startsWith("https:");

async function start({ given, client }: Parts, request: ProviderRequest, reply: FastifyReply): Promise<FastifyReply> {
  signIn.requireOwnPage(given, request);
  const { origin } = new URL(given.controlUrl());
  if (request.headers.origin !== origin)
    throw new Refused("conflict", { error: `Providers send people back to the platform's own address: ${origin}` });
  const parsed = wish.safeParse(request.body);
  if (!parsed.success) throw new Refused("invalid_request");
  const to = parsed.data;
  const session = to.to === "link" || to.to === "prove" ? await presentSession(given, request) : undefined;
  if (session !== undefined && to.to === "link") await people.requireMayAddWay(given.platform.db, session);
  if (to.to === "join")
    await people.requireInvite(given.platform.db, to.code).catch((error: unknown) => {
      throw error instanceof Refused ? signIn.refusedSignIn(given, request, error.message) : error;
    });
  const provider = await openProvider(given.platform, request.params.provider);
  const startedAtMs = Date.now();
  const { url, ...expected } = await client.start(provider, callbackOf(given, provider.id), {
    fresh: to.to === "prove",
  });
  const content: Attempt = { ...expected, provider: provider.id, to, session: session?.id ?? null, startedAtMs };
  const value = sealCookie(given.vault, place.name, { content, ms: attemptMs });
  const cookie = writeCookie(place, { value, ms: attemptMs, isSecure: isSecure(given) });
  return signIn.answer(reply.header("set-cookie", cookie), 200, { url });
}

export async function presentSession(
  given: Pick<signIn.SignIn, "platform" | "vault" | "controlUrl">,
  request: FastifyRequest,
): Promise<people.Session> {
  const text = signIn.tokenOfCookie(given, request);
  const session = text === undefined ? undefined : await people.sessionWithText(given.platform.db, text);
  if (session === undefined) throw new Refused("unauthorized", { error: "Sign in with an account of yours first." });
  return session;
}

async function finish({ given, client }: Parts, request: ProviderRequest, reply: FastifyReply): Promise<FastifyReply> {
  reply.header("set-cookie", writeCookie(place, { value: "", ms: 0, isSecure: isSecure(given) }));
  const value = readCookie(place, request, given.controlUrl());
  const attempt = value === undefined ? undefined : openCookie<Attempt>(given.vault, place.name, value);
  if (attempt === undefined || attempt.provider !== request.params.provider)
    throw signIn.refusedSignIn(
      given,
      request,
      "This sign-in was not started in this browser, or has expired. Start it again.",
    );
  const provider = await openProvider(given.platform, attempt.provider);
  const current = new URL(callbackOf(given, provider.id) + new URL(request.url, given.controlUrl()).search);
  const answered = await client.finish(provider, current, attempt).catch((error: unknown) => {
    throw error instanceof Refused && error.code === "unauthorized"
      ? signIn.refusedSignIn(given, request, error.message)
      : error;
  });
  const { text, next } = await act(given, { attempt, answered, provider, browser: signIn.browserOf(request) });
  // The caller of a session that was just proved may be cached.
  given.authenticator.forget();
  if (text !== null) reply.header("set-cookie", signIn.sessionCookie(given, text, isSecure(given)));
  return reply
    .code(303)
    .headers({ location: next, "cache-control": "no-store", "referrer-policy": "no-referrer" })
    .send();
}

interface Arrived {
  readonly attempt: Attempt;
  readonly answered: Answered;
  readonly provider: Provider;
  readonly browser: people.Browser;
}

/** Does what the person wanted; returns the text of a new session, and the page to go to. */
async function act(
  { platform }: ProviderSignIn,
  { attempt: { to, session: sessionId, startedAtMs }, answered, provider, browser }: Arrived,
): Promise<{ readonly text: string | null; readonly next: string }> {
  const { identity, provenAtMs } = answered;
  // The provider asked the person again; its clock may be a minute behind.
  const isProven = provenAtMs !== null && provenAtMs > startedAtMs - 60_000 && people.isRecent(new Date(provenAtMs));
  if (to.to === "join") {
    const joining = { person: { name: identity.name }, passkey: null, identity, browser };
    return { text: await people.join(platform, to.code, joining), next: "/" };
  }
  const person = await people.personOfIdentity(platform.db, identity);
  if (to.to === "sign-in") {
    if (person === undefined)
      throw new Refused("unauthorized", { error: "No account here. Ask an owner for an invitation." });
    const how = { method: "provider", fresh_at: isProven ? new Date() : null, browser } as const;
    return { text: await people.beginSession(platform, person, how), next: to.next };
  }
  const session = sessionId === null ? undefined : await people.sessionById(platform.db, sessionId);
  if (session === undefined) throw new Refused("unauthorized", { error: "Your session has ended. Sign in again." });
  if (to.to === "link") await people.addIdentity(platform, session, identity);
  else if (person !== session.person_id || !isProven)
    throw new Refused("unauthorized", {
      error: `${provider.name} did not prove that you are there. Use a passkey, or sign in to it as yourself.`,
    });
  else await people.refreshSession(platform, session.id);
  return { text: null, next: "/account" };
}
