import { randomBytes } from "node:crypto";
import { scopes } from "../../contract/access.ts";
import { limits } from "../../contract/limits.ts";
import { scopesOf } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { recordActivity } from "../activity/activity.ts";
import { voidApprovals } from "../approvals/approvals.ts";
import type { Context } from "../context.ts";
import { Refused } from "../refused.ts";
import { hashOf, isSessionText, newTokenText, requireRightsNow } from "../tokens/tokens.ts";
import { endMembership } from "./end-membership.ts";
import * as queries from "./queries.ts";
import { linkIdentity, personOfIdentity, sessionWithText, type NewIdentity, type Session } from "./sign-in-ways.ts";
import { idleMs, sessionMs } from "./rules.ts";

export {
  listSessions as sessionsOf,
  selectInvite as findInvite,
  selectMember as findMember,
  selectPasskey,
  touchPasskey,
  useChallenge,
  type NewPasskey,
} from "./queries.ts";
export { idleMs as sessionIdleMs, isRecent } from "./rules.ts";
export { personLinkPrefix, readPersonLink, usePersonLink } from "./accounts.ts";
export * from "./sign-in-ways.ts";

/** Where a person signs in. */
export interface Browser {
  readonly user_agent: string;
  readonly address: string;
}

interface People {
  readonly db: Db | Tx;
  readonly wakeups: Wakeups;
}

/** Returns the caller's person and their organizations, for `me.get`. */
export async function describePerson(db: Db | Tx, personId: string | null) {
  const person = personId === null ? undefined : await queries.selectPerson(db, personId);
  if (person === undefined) return null;
  return { ...person, organizations: await queries.membershipsOf(db, person.id) };
}

/** Returns what an invitation's link offers, without using it. */
export async function requireInvite(db: Db | Tx, code: string) {
  const found = await queries.inviteByHash(db, hashOf(code));
  if (found !== undefined) return found;
  throw new Refused("unauthorized", { error: usedInvite });
}

const usedInvite = "The invitation was used, revoked or has expired. Ask for another one.";

/** Ends the caller's own membership; fails when the caller acts for no person. */
export async function leave(ctx: Context<"me.leave">): Promise<undefined> {
  const { tx, caller } = ctx;
  await queries.lockPeople(tx, caller.org_id);
  await requireRightsNow(ctx);
  const all = caller.person_id === null ? [] : await queries.listMembers(tx, caller.org_id);
  const own = all.find(({ person_id }) => person_id === caller.person_id);
  if (own === undefined)
    return ctx.fail("conflict", { error: "This token is no person's.", hint: "Sign in to the dashboard." });
  return endMembership(ctx, own);
}

export interface Joining {
  /** The person who is signed in and joins another organization, or a new one with this name. */
  readonly person: { readonly id: string; readonly session: Pick<Session, "created_at"> } | { readonly name: string };
  readonly passkey: Omit<queries.NewPasskey, "person_id"> | null;
  /** With which the person signed in at a provider; it is linked to a new person. */
  readonly identity?: NewIdentity;
  readonly browser: Browser;
}

/** Makes a person a member by an invitation, once, and signs them in; returns the session's text. */
export async function join({ db, wakeups }: People, code: string, joining: Joining): Promise<string> {
  return db.transaction().execute(async (tx) => {
    await queries.lockPeople(tx, (await requireInvite(tx, code)).org_id);
    // Read again under the lock, under which the sender's rights change.
    const found = await requireInvite(tx, code);
    const person_id = await personWho(tx, joining, found.email);
    if (!(await queries.useInvite(tx, found.id, person_id))) throw new Refused("unauthorized", { error: usedInvite });
    if ((await queries.listMembers(tx, found.org_id)).length >= limits.members_per_organization)
      throw new Refused("conflict", {
        error: `An organization has at most ${limits.members_per_organization} people.`,
      });
    const { name } = (await queries.selectPerson(tx, person_id)) as { name: string };
    const token_id = newId("tok");
    const { org_id, role, platform_admin, project_ids } = found;
    const member = {
      ...{ id: token_id, org_id, person_id, name, role, platform_admin, project_ids, created_at: new Date() },
      scopes: platform_admin ? scopes : scopesOf(role),
      // No text has this hash: only the person's sessions act with it.
      hash: randomBytes(32),
    };
    if (!(await queries.insertMember(tx, member)))
      throw new Refused("conflict", { error: `You are a member of ${found.org_name} already.` });
    if (joining.passkey !== null && !(await queries.insertPasskey(tx, { ...joining.passkey, person_id })))
      throw new Refused("conflict", { error: "This passkey belongs to another account already." });
    await recordActivity(tx, {
      ...{ org_id, project_id: null, actor_token_id: token_id, actor_name: name },
      ...{ action: "member.joined", target: name, detail: { role, invited_by: found.invited_by } },
    });
    await wakeups.send(tx, "tokens", token_id);
    const fresh_at = joining.passkey === null ? null : new Date();
    // Who is signed in already proves nothing by joining.
    const how =
      "id" in joining.person
        ? ({ method: "switch", since: joining.person.session.created_at } as const)
        : ({ method: "invitation" } as const);
    return begin(tx, { ...how, person_id, token_id, fresh_at, browser: joining.browser });
  });
}

async function personWho(tx: Tx, { person, identity }: Joining, email: string | null): Promise<string> {
  if ("id" in person) return person.id;
  const known = identity && (await personOfIdentity(tx, identity));
  if (known !== undefined) return known;
  const id = newId("per");
  await queries.insertPerson(tx, { id, name: person.name, email: email ?? identity?.email ?? null });
  if (identity !== undefined) await linkIdentity(tx, id, identity);
  return id;
}

interface Beginning {
  readonly person_id: string;
  readonly token_id: string;
  readonly method: queries.NewSession["method"];
  readonly fresh_at: Date | null;
  /** When the person signed in, if this session continues another one: a switch makes none of them last longer. */
  readonly since?: string;
  readonly browser: Browser;
}

async function begin(tx: Tx, { browser, since, ...session }: Beginning): Promise<string> {
  if (!(await queries.lockEnabled(tx, session.person_id)))
    throw new Refused("unauthorized", { error: "Your account is disabled. Ask the platform's operator." });
  const text = newTokenText("s");
  const created_at = since === undefined ? new Date() : new Date(since);
  const row = {
    ...{ ...session, id: newId("ses"), hash: hashOf(text), created_at },
    user_agent: browser.user_agent.slice(0, 300),
    address: browser.address,
    expires_at: new Date(Math.min(created_at.getTime() + sessionMs, Date.now() + idleMs)),
  };
  await queries.insertSession(tx, row, limits.sessions_per_person);
  return text;
}

/** Signs a person in to the organization that they used last; returns the session's text. */
export async function beginSession(
  { db }: Pick<People, "db">,
  personId: string,
  how: Pick<Beginning, "method" | "fresh_at" | "browser">,
): Promise<string> {
  const [latest] = await queries.membershipsOf(db, personId);
  if (latest === undefined)
    throw new Refused("unauthorized", {
      error: "You are in no organization any more. Ask an owner for an invitation.",
    });
  const session = { ...how, person_id: personId, token_id: latest.id };
  return db.transaction().execute((tx) => begin(tx, session));
}

/** Ends this session and begins one in another of the person's organizations; undefined if it is none of theirs. */
export async function switchOrganization(people: People, text: string, orgSlug: string, browser: Browser) {
  const { db } = people;
  const session = await sessionWithText(db, text);
  if (session === undefined) return undefined;
  const { person_id, fresh_at, created_at: since } = session;
  const wanted = (await queries.membershipsOf(db, person_id)).find(({ slug }) => slug === orgSlug);
  if (wanted === undefined) return undefined;
  const next = await db.transaction().execute((tx) =>
    begin(tx, {
      person_id,
      token_id: wanted.id,
      method: "switch",
      since,
      fresh_at: fresh_at === null ? null : new Date(fresh_at),
      browser,
    }),
  );
  await endSession(people, text);
  return next;
}

/** Extends a session that is in use, at most to thirty days; returns whose it is, or undefined when it has ended. */
export async function keepSession(db: Db, text: string) {
  return isSessionText(text) ? queries.extendSession(db, hashOf(text), { idleMs, sessionMs }) : undefined;
}

/** Ends all sessions and connected programs of a person within a second; returns how many sessions there were. */
export async function endSessionsOf(tx: Tx, wakeups: Wakeups, personId: string): Promise<number> {
  const ended = await queries.endSessions(tx, { person_id: personId });
  for (const program of await queries.endPrograms(tx, personId)) await voidApprovals(tx, wakeups, program);
  await wakeups.send(tx, "tokens");
  return ended;
}

/** Ends a session, if the text is of one, within a second. */
export async function endSession({ db, wakeups }: People, text: string): Promise<void> {
  if (!isSessionText(text)) return;
  await queries.endSessions(db, { hash: hashOf(text) });
  await wakeups.send(db, "tokens");
}
