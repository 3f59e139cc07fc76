import { sql } from "kysely";
import type { Rights, Role, Scope } from "../../contract/access.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";

const projectsOf = (table: "api_token" | "invite") =>
  sql<string[] | null>`case when ${sql.ref(`${table}.project_ids`)} is not null then array(select slug from project
    where id = any(${sql.ref(`${table}.project_ids`)}) and purged_at is null order by slug) end`.as("projects");

const members = (db: Db | Tx, orgId: string) =>
  db
    .selectFrom("api_token")
    .innerJoin("person", "person.id", "api_token.person_id")
    .select([
      "api_token.id",
      "api_token.person_id",
      "person.name",
      "person.email",
      "api_token.role",
      "api_token.platform_admin",
      "api_token.project_ids",
      "api_token.last_used_at",
      "api_token.created_at",
      sql<boolean>`can_sign_in(person.id)`.as("can_sign_in"),
      projectsOf("api_token"),
    ])
    .where("api_token.org_id", "=", orgId)
    .where("api_token.kind", "=", "member")
    .where("api_token.revoked_at", "is", null);

export async function listMembers(db: Db | Tx, orgId: string) {
  return members(db, orgId).orderBy("api_token.id").execute();
}

export async function selectMember(db: Db | Tx, orgId: string, id: string) {
  return members(db, orgId).where("api_token.id", "=", id).executeTakeFirst();
}

/** Returns a person's memberships in organizations that are not suspended, the last used one first. */
export async function membershipsOf(db: Db | Tx, personId: string) {
  return db
    .selectFrom("api_token")
    .innerJoin("organization", "organization.id", "api_token.org_id")
    .select(["api_token.id", "organization.slug", "organization.name"])
    .where(({ and }) => and({ person_id: personId, kind: "member" }))
    .where("revoked_at", "is", null)
    .where("suspended_at", "is", null)
    .orderBy("api_token.last_used_at", (order) => order.desc().nullsLast())
    .execute();
}

export interface NewMember extends Rights, Columns<"api_token", "id" | "org_id" | "name" | "hash"> {
  readonly person_id: string;
  readonly created_at: Date;
}

/** Inserts a membership; returns false when the person is a member already. */
export async function insertMember(tx: Tx, { scopes, project_ids, ...member }: NewMember): Promise<boolean> {
  const done = await tx
    .insertInto("api_token")
    .values({
      ...member,
      kind: "member",
      scopes: [...scopes],
      project_ids: project_ids && [...project_ids],
      approval_mode: false,
      prefix: "",
    })
    .onConflict((on) => on.doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

/** Locks the organization, so that concurrent changes of its people wait. */
export async function lockPeople(tx: Tx, orgId: string): Promise<void> {
  await tx.selectFrom("organization").select("id").where("id", "=", orgId).forNoKeyUpdate().execute();
}

/** Returns a membership and the live tokens that it created, and those that these created, with their rights. */
export async function tokensOfMember(tx: Tx, orgId: string, id: string) {
  const { rows } = await sql<{ id: string; role: Role; scopes: Scope[]; project_ids: string[] | null }>`
    with recursive made as (
      select id from api_token where id = ${id} and org_id = ${orgId}
      union select t.id from api_token t join made on t.created_by = made.id where t.org_id = ${orgId})
    select t.id, t.role, t.scopes, t.project_ids from api_token t join made using (id) where t.revoked_at is null`.execute(
    tx,
  );
  return rows;
}

/** Returns the live owner tokens that a membership, or a token that it made, made in other organizations, in the order of their locks. */
export async function ownerTokensElsewhere(tx: Tx, { org_id, id }: { readonly org_id: string; readonly id: string }) {
  const { rows } = await sql<{ id: string; org_id: string; org_slug: string; name: string }>`
    with recursive made as (
      select id from api_token where id = ${id} and org_id = ${org_id}
      union select t.id from api_token t join made on t.created_by = made.id where t.org_id = ${org_id})
    select t.id, t.org_id, o.slug as org_slug, t.name from api_token t join made on t.created_by = made.id
      join organization o on o.id = t.org_id
    where t.org_id <> ${org_id} and t.revoked_at is null and t.role = 'owner' order by t.org_id, t.id`.execute(tx);
  return rows;
}

export async function setRights(
  tx: Tx,
  token: { readonly org_id: string; readonly id: string },
  rights: { readonly role: Role; readonly scopes: readonly Scope[]; readonly project_ids: readonly string[] | null },
): Promise<void> {
  const { role, scopes, project_ids } = rights;
  await tx
    .updateTable("api_token")
    .set({ role, scopes: [...scopes], project_ids: project_ids && [...project_ids] })
    .$if(role === "member", (update) => update.set({ platform_admin: false }))
    .where(({ and }) => and({ org_id: token.org_id, id: token.id }))
    .execute();
}

export async function revokeTokens(tx: Tx, orgId: string, ids: readonly string[]): Promise<void> {
  await tx
    .updateTable("api_token")
    .set({ revoked_at: sql`now()` })
    .where("org_id", "=", orgId)
    .where("id", "in", [...ids])
    .execute();
}

export interface NewInvite extends Columns<
  "invite",
  "id" | "org_id" | "hash" | "email" | "platform_admin" | "created_by"
> {
  readonly role: Role;
  readonly project_ids: readonly string[] | null;
  readonly created_at: Date;
  readonly expires_at: Date;
}

export async function insertInvite(tx: Tx, { project_ids, ...invite }: NewInvite): Promise<void> {
  await tx
    .insertInto("invite")
    .values({ ...invite, project_ids: project_ids && [...project_ids] })
    .execute();
}

/** Returns how many invitations with an address the organization has made within a day, revoked ones included. */
export async function countMailed(tx: Tx, org_id: string, now: Date): Promise<number> {
  const { count } = await tx
    .selectFrom("invite")
    .select(sql<number>`count(*)::integer`.as("count"))
    .where("org_id", "=", org_id)
    .where("email", "is not", null)
    .where("created_at", ">", new Date(now.getTime() - 24 * 3_600_000).toISOString())
    .executeTakeFirstOrThrow();
  return count;
}

// An invitation grants what its sender still has, so it ends with the sender's rights.
const openInvites = (db: Db | Tx) =>
  db
    .selectFrom("invite")
    .innerJoin("api_token", "api_token.id", "invite.created_by")
    .innerJoin("organization", "organization.id", "invite.org_id")
    .select([
      "invite.id",
      "invite.org_id",
      "invite.email",
      "invite.role",
      "invite.platform_admin",
      "invite.project_ids",
      "api_token.name as invited_by",
      "organization.slug as org_slug",
      "organization.name as org_name",
      "invite.created_at",
      "invite.expires_at",
      projectsOf("invite"),
    ])
    .where("invite.used_at", "is", null)
    .where("invite.revoked_at", "is", null)
    .where(sql<boolean>`invite.expires_at > now()`)
    .where("organization.suspended_at", "is", null)
    .where("api_token.revoked_at", "is", null)
    .where(sql<boolean>`(api_token.expires_at is null or api_token.expires_at > now())`)
    .where(sql<boolean>`(api_token.platform_admin or (api_token.role = 'owner' and not invite.platform_admin))`);

export async function listInvites(db: Db | Tx, orgId: string) {
  return openInvites(db).where("invite.org_id", "=", orgId).orderBy("invite.id", "desc").execute();
}

export async function selectInvite(db: Db | Tx, orgId: string, id: string) {
  return openInvites(db)
    .where(({ and }) => and({ "invite.org_id": orgId, "invite.id": id }))
    .executeTakeFirst();
}

export async function inviteByHash(db: Db | Tx, hash: Buffer) {
  return openInvites(db).where("invite.hash", "=", hash).executeTakeFirst();
}

/** Marks an invitation as used; returns false when it was used or revoked meanwhile. */
export async function useInvite(tx: Tx, id: string, personId: string): Promise<boolean> {
  const done = await tx
    .updateTable("invite")
    .set({ used_at: sql`now()`, used_by: personId })
    .where("id", "=", id)
    .where("used_at", "is", null)
    .where("revoked_at", "is", null)
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export async function revokeInvite(tx: Tx, orgId: string, id: string): Promise<boolean> {
  const done = await tx
    .updateTable("invite")
    .set({ revoked_at: sql`now()` })
    .where(({ and }) => and({ org_id: orgId, id }))
    .where("used_at", "is", null)
    .where("revoked_at", "is", null)
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export async function selectPerson(db: Db | Tx, id: string) {
  return db.selectFrom("person").select(["id", "name", "email"]).where("id", "=", id).executeTakeFirst();
}

/** Returns whether a person may sign in; until the transaction ends, the operator cannot disable them. */
export async function lockEnabled(tx: Tx, id: string): Promise<boolean> {
  const found = await tx.selectFrom("person").select("disabled_at").where("id", "=", id).forShare().executeTakeFirst();
  return found?.disabled_at === null;
}

export async function insertPerson(tx: Tx, person: Columns<"person", "id" | "name" | "email">): Promise<void> {
  await tx.insertInto("person").values(person).execute();
}

export interface NewPasskey extends Columns<
  "passkey",
  "credential_id" | "person_id" | "public_key" | "counter" | "rp_id"
> {
  readonly transports: readonly string[];
  /** Default: Passkey. */
  readonly name?: string;
}

/** Inserts a passkey; returns false when it is known already. */
export async function insertPasskey(tx: Tx, { transports, ...passkey }: NewPasskey): Promise<boolean> {
  const done = await tx
    .insertInto("passkey")
    .values({ ...passkey, transports: [...transports] })
    .onConflict((on) => on.doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

export async function selectPasskey(db: Db | Tx, credentialId: string) {
  return db
    .selectFrom("passkey")
    .select(["credential_id", "person_id", "public_key", "counter", "transports", "rp_id"])
    .where("credential_id", "=", credentialId)
    .executeTakeFirst();
}

export async function touchPasskey(db: Db | Tx, credentialId: string, counter: number): Promise<void> {
  await db
    .updateTable("passkey")
    .set({ counter, last_used_at: sql`now()` })
    .where("credential_id", "=", credentialId)
    .execute();
}

/** Records that a challenge was answered; returns false when it was before. Forgets those that have expired. */
export async function useChallenge(db: Db | Tx, hash: Buffer, expiresAt: Date): Promise<boolean> {
  await sql`delete from used_challenge where expires_at < now()`.execute(db);
  const done = await db
    .insertInto("used_challenge")
    .values({ hash, expires_at: expiresAt })
    .onConflict((on) => on.doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

export interface NewSession extends Columns<
  "session",
  "id" | "person_id" | "token_id" | "hash" | "user_agent" | "address"
> {
  readonly method: "passkey" | "invitation" | "switch" | "provider" | "link";
  /** When the person last proved to be there. */
  readonly fresh_at: Date | null;
  readonly created_at: Date;
  readonly expires_at: Date;
}

/** Inserts a session and ends the person's oldest ones beyond `most`. */
export async function insertSession(tx: Tx, session: NewSession, most: number): Promise<void> {
  await tx.insertInto("session").values(session).execute();
  await sql`update session set ended_at = now() where id in (select id from session where person_id = ${session.person_id}
    and ended_at is null and expires_at > now() order by id desc offset ${most})`.execute(tx);
}

/** Records the use of a live session and extends it; returns whose it is. */
export async function extendSession(db: Db | Tx, hash: Buffer, times: { idleMs: number; sessionMs: number }) {
  const { rows } = await sql<{ id: string; person_id: string }>`
    update session set last_used_at = now(), expires_at = least(created_at + ${times.sessionMs} * interval '1 millisecond',
      now() + ${times.idleMs} * interval '1 millisecond')
    where hash = ${hash} and ended_at is null and expires_at > now() returning id, person_id`.execute(db);
  return rows[0];
}

export async function listSessions(db: Db | Tx, personId: string) {
  return db
    .selectFrom("session")
    .select(["id", "user_agent", "address", "created_at", "last_used_at", "expires_at"])
    .where("person_id", "=", personId)
    .where("ended_at", "is", null)
    .where(sql<boolean>`expires_at > now()`)
    .orderBy("id", "desc")
    .execute();
}

/** Revokes the tokens of the programs that a person has connected, also by another program, in all organizations. */
export async function endPrograms(db: Db | Tx, personId: string) {
  const { rows } = await sql<{ token_id: string; org_id: string }>`update api_token set revoked_at = now()
    where kind in ('cli', 'mcp') and revoked_at is null and person_id = ${personId} returning id as token_id, org_id`.execute(
    db,
  );
  return rows;
}

/** Ends a session by its hash, or all of a person's; returns how many ended. */
export async function endSessions(db: Db | Tx, of: { readonly hash: Buffer } | { readonly person_id: string }) {
  const done = await db
    .updateTable("session")
    .set({ ended_at: sql`now()` })
    .where("ended_at", "is", null)
    .where(({ eb }) => ("hash" in of ? eb("hash", "=", of.hash) : eb("person_id", "=", of.person_id)))
    .executeTakeFirst();
  return Number(done.numUpdatedRows);
}
