import { sql } from "kysely";
import type { Rights, Role, Scope } from "../../contract/access.ts";
import { scopesOf } from "../../contract/routes.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import type { Caller } from "../context.ts";

const columns = [
  "id",
  "name",
  "kind",
  "role",
  "platform_admin",
  "scopes",
  "approval_mode",
  "prefix",
  "created_at",
  "last_used_at",
  "expires_at",
] as const;

const projectsOf = sql<string[] | null>`case when project_ids is not null then array(
  select slug from project where id = any(api_token.project_ids) and purged_at is null order by slug) end`.as(
  "projects",
);

const person = sql<string | null>`(select person.name from person where person.id = api_token.person_id)`.as("person");

/** The token of a program ends by itself after 30 days without use; people forget what they connected. */
export const isInUse = sql<boolean>`(api_token.kind not in ('cli', 'mcp')
  or coalesce(api_token.last_used_at, api_token.created_at) > now() - interval '30 days')`;

/** A token as it is listed: programs that did not fetch theirs, or whose token has ended, are none. */
const isListed = sql<boolean>`(kind = 'token' or (kind in ('cli', 'mcp') and prefix <> '' and expires_at > now() and ${isInUse}))`;

/** The projects to which a token is limited, with their previews. */
export const reachedProjects = sql<
  string[] | null
>`case when api_token.project_ids is not null then api_token.project_ids || array(
  select id from project where preview_of = any(api_token.project_ids) and purged_at is null) end`.as("project_ids");

const isLive = sql<boolean>`api_token.revoked_at is null and (api_token.expires_at is null or api_token.expires_at > now()) and ${isInUse}`;

const callers = (db: Db | Tx) =>
  db
    .selectFrom("api_token")
    .innerJoin("organization", "organization.id", "api_token.org_id")
    .select([
      "api_token.id as token_id",
      // What is done by a person's program names both.
      sql<string>`case when api_token.kind in ('cli', 'mcp') and api_token.person_id is not null then (select person.name from person
        where person.id = api_token.person_id) || ' via ' || api_token.name else api_token.name end`.as("token_name"),
      "api_token.role",
      "api_token.platform_admin",
      "api_token.scopes",
      "api_token.approval_mode",
      reachedProjects,
      "api_token.last_used_at",
      "api_token.expires_at",
      "api_token.person_id",
      "organization.id as org_id",
      "organization.slug as org_slug",
      "organization.name as org_name",
      "organization.suspended_at",
    ])
    .where(isLive);

const withoutSession = [sql<null>`null`.as("session_id"), sql<null>`null`.as("fresh_at")] as const;

/** Returns a token or membership that may act now: a disabled person's membership stays, but may not. */
export async function selectCaller(db: Db | Tx, id: string) {
  return callers(db)
    .select(withoutSession)
    .where("api_token.id", "=", id)
    .where(sql<boolean>`not exists (select from person where id = api_token.person_id and disabled_at is not null)`)
    .where("organization.suspended_at", "is", null)
    .executeTakeFirst();
}

export async function selectTokenByHash(db: Db | Tx, hash: Buffer) {
  return callers(db).select(withoutSession).where("api_token.hash", "=", hash).executeTakeFirst();
}

/** Returns the membership of a live session. */
export async function selectSessionByHash(db: Db | Tx, hash: Buffer) {
  return callers(db)
    .innerJoin("session", "session.token_id", "api_token.id")
    .select(["session.expires_at", "session.id as session_id", "session.fresh_at"])
    .where("session.hash", "=", hash)
    .where("session.ended_at", "is", null)
    .where(sql<boolean>`session.expires_at > now()`)
    .executeTakeFirst();
}

export async function listTokens(db: Db | Tx, orgId: string) {
  return db
    .selectFrom("api_token")
    .select([...columns, projectsOf, person])
    .where("org_id", "=", orgId)
    .where(isListed)
    .where("revoked_at", "is", null)
    .orderBy("id", "desc")
    .execute();
}

export async function selectToken(db: Db | Tx, orgId: string, id: string) {
  return db
    .selectFrom("api_token")
    .select([...columns, projectsOf, person])
    .where(({ and }) => and({ org_id: orgId, id }))
    .where("revoked_at", "is", null)
    .executeTakeFirst();
}

export interface NewToken
  extends Rights, Columns<"api_token", "id" | "org_id" | "name" | "approval_mode" | "prefix" | "hash" | "created_by"> {
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly kind?: "cli" | "mcp";
  readonly person_id?: string | null;
}

/** Leaves out previews of projects in the list, which are reached through those. */
const withoutPreviews = (ids: readonly string[]) => sql<
  string[]
>`array(select id from unnest(${[...ids]}::text[]) as given (id)
  where not exists (select from project p where p.id = given.id and p.preview_of = any(${[...ids]}::text[])))`;

export async function insertToken(tx: Db | Tx, token: NewToken) {
  return tx
    .insertInto("api_token")
    .values({
      ...token,
      scopes: [...token.scopes],
      project_ids: token.project_ids && withoutPreviews(token.project_ids),
    })
    .returning([...columns, projectsOf, person])
    .executeTakeFirstOrThrow();
}

/**
 * Returns whether the organization keeps a token that may do everything in it without these: a live owner token with all of an owner's
 * scopes, for all projects, that is not in approval mode, or a person who can sign in with such rights. Locks the organization, so that concurrent calls wait until the transaction ends.
 */
export async function lockKeepsOwner(tx: Tx, orgId: string, without: readonly string[]): Promise<boolean> {
  await tx.selectFrom("organization").select("id").where("id", "=", orgId).forNoKeyUpdate().execute();
  const found = await tx
    .selectFrom("api_token")
    .select("id")
    .where("org_id", "=", orgId)
    .where("id", "not in", [...without])
    .where("role", "=", "owner")
    .where("project_ids", "is", null)
    .where("approval_mode", "=", false)
    .where(sql<boolean>`scopes @> ${scopesOf("owner")}::text[]`)
    .where(sql<boolean>`(kind = 'token' or kind = 'member' and can_sign_in(api_token.person_id))`)
    .where(isLive)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/**
 * Returns the ids of the caller's own tokens: itself, those of its person, and what these made, those that have ended included. Who is limited
 * to projects has none that reach others, as those of the person whose program it is may.
 */
export async function ownTokenIds(
  db: Db | Tx,
  { org_id, token_id, person_id, project_ids }: Pick<Caller, "org_id" | "token_id" | "person_id" | "project_ids">,
): Promise<ReadonlySet<string>> {
  const reach = project_ids === null ? sql`true` : sql`project_ids <@ ${[...project_ids]}::text[]`;
  const { rows } = await sql<{ id: string }>`
    with recursive own as (
      select id from api_token where org_id = ${org_id} and (id = ${token_id} or person_id = ${person_id})
      union select t.id from api_token t join own on t.created_by = own.id where t.org_id = ${org_id})
    select id from api_token join own using (id) where ${reach}`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** Locks the organization, so that concurrent creations wait, and returns how many tokens it has that are not revoked. */
export async function lockTokenCount(tx: Tx, orgId: string): Promise<number> {
  await tx.selectFrom("organization").select("id").where("id", "=", orgId).forNoKeyUpdate().execute();
  const { count } = await tx
    .selectFrom("api_token")
    .select(sql<number>`count(*)`.as("count"))
    .where(({ and }) => and({ org_id: orgId, kind: "token" }))
    .where("revoked_at", "is", null)
    .executeTakeFirstOrThrow();
  return count;
}

/** Revokes a token; returns false when it was already revoked. */
export async function revokeToken(tx: Tx, orgId: string, id: string): Promise<boolean> {
  const done = await tx
    .updateTable("api_token")
    .set({ revoked_at: sql`now()` })
    .where(({ and }) => and({ org_id: orgId, id }))
    .where("revoked_at", "is", null)
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Records the use of a token, at most once a minute. */
export async function touchToken(db: Db, id: string): Promise<void> {
  await db
    .updateTable("api_token")
    .set({ last_used_at: sql`now()` })
    .where("id", "=", id)
    .where((where) =>
      where.or([
        where("last_used_at", "is", null),
        where("last_used_at", "<", sql<string>`now() - interval '1 minute'`),
      ]),
    )
    .execute();
}

/** Inserts the first organization; returns false when any exists. */
export async function insertFirstOrganization(
  tx: Tx,
  organization: { id: string; slug: string; name: string; max_projects: number; is_first: boolean },
): Promise<boolean> {
  // When two processes start at once, the second waits here and then sees the first one's row.
  await sql`lock table organization in exclusive mode`.execute(tx);
  const any = await tx.selectFrom("organization").select("id").limit(1).executeTakeFirst();
  if (any !== undefined) return false;
  await tx.insertInto("organization").values(organization).execute();
  return true;
}

/** Gives people the scopes that their role has in this version. */
export async function widenMembers(db: Db | Tx, role: Role, all: readonly Scope[]): Promise<void> {
  const every = sql<string[]>`${[...all]}::text[]`;
  await db
    .updateTable("api_token")
    .set({ scopes: every })
    .where(({ and }) => and({ kind: "member", role, platform_admin: false }))
    .where(sql<boolean>`not scopes @> ${every}`)
    .execute();
}

/** Gives the platform's administrators every scope. None of their tokens is narrower on purpose: no call can create one. */
export async function widenAdministrators(db: Db | Tx, all: readonly Scope[]): Promise<void> {
  const every = sql<string[]>`${[...all]}::text[]`;
  await db
    .updateTable("api_token")
    .set({ scopes: every })
    .where("platform_admin", "=", true)
    .where("created_by", "is", null)
    .where(sql<boolean>`not scopes @> ${every}`)
    .execute();
}
