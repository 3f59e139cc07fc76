import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { name } from "../contract/table.ts";
import { Refused, type Caller, type HandlerPlatform } from "../features/context.ts";
import type { Authenticator } from "./authenticator.ts";
import * as people from "../features/people/people.ts";
import { offeredProviders } from "../features/providers/providers.ts";
import * as passkeys from "./passkeys.ts";
import { presentSession } from "./provider-sign-in.ts";
import * as signIn from "./sign-in.ts";

export interface PersonSignIn extends signIn.SignIn {
  readonly platform: Pick<HandlerPlatform, "db" | "wakeups" | "vault">;
  readonly authenticator: Pick<Authenticator, "authenticate" | "forget">;
}

/** Adds the ways in for people: passkeys and invitations. All are below `/session`, for the dashboard's own page alone. */
export function addPersonSignIn(app: FastifyInstance, given: PersonSignIn): void {
  const routes: Record<string, (given: PersonSignIn, request: FastifyRequest) => Promise<Done>> = {
    passkey: signInByPasskey,
    invitation: showInvitation,
    join: joinByInvitation,
    organization: changeOrganization,
    ways: async ({ platform }) => ({ providers: await offeredProviders(platform.db) }),
    "add-passkey": addOwnPasskey,
    prove: proveByPasskey,
  };
  for (const [path, serve] of Object.entries(routes))
    app.post(`/session/${path}`, async (request, reply: FastifyReply) => {
      signIn.requireOwnPage(given, request);
      const done = await serve(given, request).catch((error: unknown) => {
        if (error instanceof Refused && error.code === "unauthorized")
          throw signIn.refusedSignIn(given, request, error.message);
        throw error;
      });
      return typeof done === "string"
        ? signIn.startSession(given, request, reply, done)
        : signIn.answer(reply, 200, done);
    });
}

/** The text of a new session, or what the page needs first. */
type Done = string | object;

/** Returns who signed with their passkey; before that, the options to sign with, or why nobody can. */
async function signed(given: PersonSignIn, request: FastifyRequest, purpose: "sign-in" | `prove:${string}`) {
  const site = siteOf(given);
  const { passkey } = bodyOf(request, z.object({ passkey: z.unknown().optional() }));
  const reason = passkeys.whyNoPasskeys(site, request.headers.origin ?? "");
  if (reason !== undefined) return { unavailable: reason };
  if (passkey === undefined) return { options: await passkeys.optionsToSign(site, purpose) };
  return passkeys.personOfAnswer(site, purpose, passkey);
}

async function signInByPasskey(given: PersonSignIn, request: FastifyRequest): Promise<Done> {
  const person = await signed(given, request, "sign-in");
  if (typeof person !== "string") return person;
  const how = { method: "passkey", fresh_at: new Date(), browser: signIn.browserOf(request) } as const;
  return people.beginSession(given.platform, person, how);
}

const code = z.string().min(1).max(200);

/** Shows what an invitation's link offers, without using it: programs that look at links in mails must not. */
async function showInvitation(given: PersonSignIn, request: FastifyRequest): Promise<Done> {
  const found = await people.requireInvite(given.platform.db, bodyOf(request, z.object({ code })).code);
  const present = await signIn.sessionOf(given, request);
  return {
    organization: found.org_name,
    invited_by: found.invited_by,
    role: found.role,
    projects: found.projects,
    /** Who is signed in here already and can join without another passkey. */
    present: personIn(present) === null ? null : (present?.token_name ?? null),
    passkeys_unavailable: passkeys.whyNoPasskeys(siteOf(given), request.headers.origin ?? "") ?? null,
    providers: await offeredProviders(given.platform.db),
  };
}

/** Returns whose session it is; null for a token, also for that of a person's program, which has fewer rights than the person. */
function personIn(present: Caller | undefined): string | null {
  return (present?.session_id ?? null) === null ? null : (present?.person_id ?? null);
}

const joinBody = z.object({ code, name: name.optional(), passkey: z.unknown().optional() });

/** Returns the options of a new passkey, or makes the person a member. Without a name, the person who is signed in joins. */
async function joinByInvitation(given: PersonSignIn, request: FastifyRequest): Promise<Done> {
  const site = siteOf(given);
  const { code: link, name: chosen, passkey } = bodyOf(request, joinBody);
  const { id: inviteId } = await people.requireInvite(given.platform.db, link);
  const browser = signIn.browserOf(request);
  const present = await signIn.sessionOf(given, request);
  if (chosen === undefined) {
    const id = personIn(present);
    if (id === null) throw new Refused("invalid_request", { error: "Type your name." });
    const session = await presentSession(given, request);
    return people.join(given.platform, link, { person: { id, session }, passkey: null, browser });
  }
  const purpose = `join:${inviteId}` as const;
  const isOffered = passkeys.whyNoPasskeys(site, request.headers.origin ?? "") === undefined;
  if (isOffered && passkey === undefined) return { options: await passkeys.optionsToRegister(site, purpose, chosen) };
  const made = isOffered ? await passkeys.createdPasskey(site, purpose, passkey) : null;
  return people.join(given.platform, link, { person: { name: chosen }, passkey: made, browser });
}

/** Returns the options of a new passkey for the person who is signed in, or adds it. */
async function addOwnPasskey(given: PersonSignIn, request: FastifyRequest): Promise<Done> {
  const { name: chosen, passkey } = bodyOf(request, z.object({ name, passkey: z.unknown().optional() }));
  const session = await presentSession(given, request);
  await people.requireMayAddWay(given.platform.db, session);
  const site = siteOf(given);
  const reason = passkeys.whyNoPasskeys(site, request.headers.origin ?? "");
  if (reason !== undefined) throw new Refused("conflict", { error: reason });
  const purpose = `add:${session.id}` as const;
  if (passkey === undefined) return { options: await passkeys.optionsToRegister(site, purpose, session.name) };
  const made = await passkeys.createdPasskey(site, purpose, passkey);
  await people.addPasskey(given.platform, session, { ...made, name: chosen });
  return {};
}

/** Records that the person who is signed in is there. */
async function proveByPasskey(given: PersonSignIn, request: FastifyRequest): Promise<Done> {
  const session = await presentSession(given, request);
  const person = await signed(given, request, `prove:${session.id}`);
  if (typeof person !== "string") return person;
  if (person !== session.person_id)
    throw new Refused("unauthorized", { error: "This passkey belongs to another account." });
  await people.refreshSession(given.platform, session.id);
  given.authenticator.forget();
  return {};
}

async function changeOrganization(given: PersonSignIn, request: FastifyRequest): Promise<Done> {
  const { organization } = bodyOf(request, z.object({ organization: z.string().max(100) }));
  const text = signIn.tokenOfCookie(given, request);
  const next =
    text === undefined
      ? undefined
      : await people.switchOrganization(given.platform, text, organization, signIn.browserOf(request));
  given.authenticator.forget();
  return next ?? Promise.reject(new Refused("not_found", { error: "You are not a member of this organization." }));
}

function siteOf({ platform, controlUrl }: PersonSignIn): passkeys.PasskeySite {
  return { db: platform.db, vault: platform.vault, controlUrl: controlUrl() };
}

function bodyOf<T extends z.ZodType>(request: FastifyRequest, shape: T): z.infer<T> {
  const parsed = shape.safeParse(request.body ?? {});
  if (parsed.success) return parsed.data;
  throw new Refused("invalid_request", { error: parsed.error.issues[0]?.message ?? "The request is malformed." });
}
