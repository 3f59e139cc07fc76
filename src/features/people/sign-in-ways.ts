import { limits } from "../../contract/limits.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { recordActivity } from "../activity/activity.ts";
import { Refused } from "../refused.ts";
import { hashOf, isSessionText } from "../tokens/tokens.ts";
import { insertPasskey, type NewPasskey } from "./queries.ts";
import { isRecent } from "./rules.ts";
import * as queries from "./way-queries.ts";

interface People {
  readonly db: Db;
  readonly wakeups: Wakeups;
}

/** Who signed in at an identity provider. Issuer and subject find the account; the rest is for people to read. */
export interface NewIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly label: string;
  readonly name: string;
  readonly email: string | null;
}

export type Session = NonNullable<Awaited<ReturnType<typeof queries.selectSession>>>;

export async function sessionWithText(db: Db, text: string): Promise<Session | undefined> {
  return isSessionText(text) ? queries.selectSession(db, { hash: hashOf(text) }) : undefined;
}

export async function sessionById(db: Db, id: string): Promise<Session | undefined> {
  return queries.selectSession(db, { id });
}

/** Refuses another way to sign in unless the person just proved to be there, by a passkey or, without one, by signing in. */
export async function requireMayAddWay(db: Db, { person_id, fresh_at, created_at, method }: Session): Promise<void> {
  if (isRecent(fresh_at)) return;
  // A switch to another organization begins a session without a sign-in.
  const justSignedIn = method !== "switch" && isRecent(created_at);
  const hasNone = method === "link" || (await queries.listPasskeys(db, person_id)).length === 0;
  if (!hasNone || !justSignedIn) throw new Refused("fresh_sign_in_required");
}

/** Records that a session's person proved to be there. */
export async function refreshSession({ db, wakeups }: People, id: string): Promise<void> {
  await queries.refreshSession(db, id);
  await wakeups.send(db, "tokens");
}

/** Returns whose identity it is, and records its use; undefined when no account has it. */
export async function personOfIdentity(db: Db | Tx, identity: NewIdentity): Promise<string | undefined> {
  const found = await queries.selectIdentity(db, identity);
  if (found !== undefined) await queries.touchIdentity(db, found.id, identity.label);
  return found?.person_id;
}

/** Gives a person another identity; refuses one that another account has. */
export async function linkIdentity(db: Db | Tx, person_id: string, given: NewIdentity): Promise<void> {
  const { issuer, subject, label } = given;
  const owner = await personOfIdentity(db, given);
  if (owner === person_id) return;
  if (owner === undefined && (await queries.listIdentities(db, person_id)).length >= limits.identities_per_person)
    throw new Refused("conflict", { error: `A person has at most ${limits.identities_per_person} identities.` });
  const row = { id: newId("idn"), person_id, issuer, subject, label };
  if (owner !== undefined || !(await queries.insertIdentity(db as Tx, row)))
    throw new Refused("conflict", { error: `${label} belongs to another account already.` });
}

/** Gives the person of a session another identity. */
export async function addIdentity({ db }: Pick<People, "db">, session: Session, identity: NewIdentity): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await queries.lockPerson(tx, session.person_id);
    await linkIdentity(tx, session.person_id, identity);
    await record(tx, session, { action: "identity.linked", detail: { issuer: identity.issuer } });
  });
}

export async function addPasskey(
  { db }: Pick<People, "db">,
  session: Session,
  passkey: Omit<NewPasskey, "person_id"> & { readonly name: string },
): Promise<void> {
  const { person_id } = session;
  await db.transaction().execute(async (tx) => {
    await queries.lockPerson(tx, person_id);
    if ((await queries.listPasskeys(tx, person_id)).length >= limits.passkeys_per_person)
      throw new Refused("conflict", { error: `A person has at most ${limits.passkeys_per_person} passkeys.` });
    if (!(await insertPasskey(tx, { ...passkey, person_id })))
      throw new Refused("conflict", { error: "This passkey belongs to an account already." });
    await record(tx, session, { action: "passkey.added", detail: { name: passkey.name } });
  });
}

async function record(
  tx: Tx,
  { org_id, token_id, name }: Session,
  what: { readonly action: string; readonly detail: Readonly<Record<string, unknown>> },
): Promise<void> {
  await recordActivity(tx, {
    ...{ org_id, project_id: null, actor_token_id: token_id, actor_name: name, target: name },
    ...what,
  });
}

/** Returns the passkeys of a person. `usable`: it belongs to the present host of the platform. */
export async function passkeysOf(db: Db | Tx, personId: string, host: string) {
  const all = await queries.listPasskeys(db, personId);
  return all.map(({ rp_id, ...passkey }) => ({ ...passkey, usable: rp_id === host }));
}

/** Returns the identities of a person. `usable`: the platform has the provider still. */
export async function identitiesOf(db: Db | Tx, personId: string) {
  const all = await queries.listIdentities(db, personId);
  return all.map((each) => ({ ...each, usable: each.provider !== null }));
}

/** Removes a passkey or an identity; false when there is none, "last" when the person could not sign in again. */
export async function removeWay(
  tx: Tx,
  of: { readonly person_id: string; readonly host: string },
  id: string,
): Promise<boolean | "last"> {
  await queries.lockPerson(tx, of.person_id);
  const passkeys = await passkeysOf(tx, of.person_id, of.host);
  const identities = await identitiesOf(tx, of.person_id);
  const all = [...passkeys, ...identities];
  if (!all.some((each) => each.id === id)) return false;
  if (!all.some((each) => each.usable && each.id !== id)) return "last";
  await queries.deletePasskey(tx, of.person_id, id);
  await queries.deleteIdentity(tx, of.person_id, id);
  return true;
}

export { renamePasskey, renamePerson } from "./way-queries.ts";
