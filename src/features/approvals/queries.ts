import type { Page } from "../../kit/page.ts";
import { sql, type SqlBool } from "kysely";
import type { ApprovalStatus } from "../../contract/states.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { isWithin, type Reach } from "../../store/within.ts";

const at = (time: Date) => sql<string>`${time}`;

/** The current status, even if the row has not been marked expired yet. */
const statusAt = (now: Date) =>
  sql<ApprovalStatus>`case when approval.status in ('pending', 'approved') and approval.expires_at <= ${now} then 'expired' else approval.status end`;

const columns = [
  "approval.id",
  "approval.token_id",
  "approval.token_name",
  "approval.project_id",
  "approval.route",
  "approval.method",
  "approval.path",
  "approval.target",
  "approval.created_at",
  "approval.expires_at",
  "approval.decided_at",
  "approval.consumed_at",
  "approval.request",
] as const;

const shown = (db: Db | Tx, now: Date) =>
  db
    .selectFrom("approval")
    .leftJoin("project", "project.id", "approval.project_id")
    .select([...columns, "project.slug as project", statusAt(now).as("status")]);

export async function selectApproval(db: Db | Tx, key: { org_id: string; id: string }, now: Date) {
  const { org_id, id } = key;
  return shown(db, now).where("approval.org_id", "=", org_id).where("approval.id", "=", id).executeTakeFirst();
}

export type ApprovalRow = NonNullable<Awaited<ReturnType<typeof selectApproval>>>;

export interface ApprovalsPage extends Page<string> {
  readonly status?: ApprovalStatus | undefined;
  readonly now: Date;
}

/** Returns a page of the approvals that a caller sees, newest first, and one row more. */
export async function listApprovals(
  db: Db | Tx,
  caller: Reach & { readonly token_id: string },
  page: ApprovalsPage,
): Promise<readonly ApprovalRow[]> {
  let query = shown(db, page.now)
    .where("approval.org_id", "=", caller.org_id)
    .where(sql<SqlBool>`(approval.token_id = ${caller.token_id} or ${isWithin("approval.project_id", caller)})`);
  if (page.cursor !== undefined) query = query.where("approval.id", "<", page.cursor);
  if (page.status !== undefined) query = query.where(sql<SqlBool>`${statusAt(page.now)} = ${page.status}`);
  return query
    .orderBy("approval.id", "desc")
    .limit(page.limit + 1)
    .execute();
}

export type RequestKey = Columns<"approval", "org_id" | "token_id" | "fingerprint">;

/** Consumes an approval and returns its id; undefined when there is none. Of several concurrent calls, one succeeds. */
export async function consumeApproval(tx: Tx, key: RequestKey, now: Date): Promise<string | undefined> {
  const done = await tx
    .updateTable("approval")
    .set({ status: "consumed", consumed_at: now })
    .where("org_id", "=", key.org_id)
    .where("token_id", "=", key.token_id)
    .where("fingerprint", "=", key.fingerprint)
    .where("status", "=", "approved")
    .where("expires_at", ">", at(now))
    .returning("id")
    .executeTakeFirst();
  return done?.id;
}

/** Locks the organization, so that only one request at a time looks for its approval and creates one. */
export async function lockRequests(tx: Tx, orgId: string): Promise<void> {
  await tx.selectFrom("organization").select("id").where("id", "=", orgId).forNoKeyUpdate().execute();
}

export async function selectOpen(tx: Tx, key: RequestKey, now: Date): Promise<ApprovalRow | undefined> {
  return shown(tx, now)
    .where(({ and }) => and({ "approval.org_id": key.org_id, token_id: key.token_id, fingerprint: key.fingerprint }))
    .where("approval.status", "in", ["pending", "approved"])
    .executeTakeFirst();
}

/** Returns the newest denial after `since` of the same route on the same resource, whatever the body, which could be changed. */
export async function selectDenial(
  tx: Tx,
  asked: { org_id: string; token_id: string; route: string; resource: string },
  since: Date,
): Promise<ApprovalRow | undefined> {
  return shown(tx, since)
    .where("approval.org_id", "=", asked.org_id)
    .where("token_id", "=", asked.token_id)
    .where("route", "=", asked.route)
    .where("resource", "=", asked.resource)
    .where("approval.status", "=", "denied")
    .where("decided_at", ">", at(since))
    .orderBy("decided_at", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** Returns how many requests wait: of this token, those it just withdrew included, since each sent a message; and of the organization. */
export async function countPending(
  tx: Tx,
  { org_id, token_id }: Pick<RequestKey, "org_id" | "token_id">,
  { now, withdrawnSince }: { readonly now: Date; readonly withdrawnSince: Date },
) {
  const isPending = sql`status = 'pending' and expires_at > ${now}`;
  return tx
    .selectFrom("approval")
    .select([
      sql<number>`count(*) filter (where token_id = ${token_id} and (${isPending}
        or (status = 'expired' and created_at > ${withdrawnSince})))`.as("of_token"),
      sql<number>`count(*) filter (where ${isPending})`.as("of_organization"),
    ])
    .where("org_id", "=", org_id)
    .where("status", "in", ["pending", "expired"])
    .executeTakeFirstOrThrow();
}

export interface NewApproval
  extends
    RequestKey,
    Columns<"approval", "id" | "token_name" | "route" | "method" | "path" | "resource" | "project_id" | "target">,
    Columns<"approval", "link_hash"> {
  /** JSON. */
  readonly request: string;
  readonly created_at: Date;
  readonly expires_at: Date;
}

export async function insertApproval(tx: Tx, approval: NewApproval): Promise<void> {
  await tx.insertInto("approval").values(approval).execute();
}

/** Marks approvals as expired whose time is over, in one organization or in all. Returns their ids. */
export async function expireApprovals(db: Db | Tx, now: Date, orgId?: string): Promise<readonly string[]> {
  let query = db
    .updateTable("approval")
    .set({ status: "expired" })
    .where("status", "in", ["pending", "approved"])
    .where("expires_at", "<=", at(now));
  if (orgId !== undefined) query = query.where("org_id", "=", orgId);
  return (await query.returning("id").execute()).map(({ id }) => id);
}

/** Expires a token's open approvals, or the one with this id. Returns their ids. */
export async function expireOfToken(
  tx: Tx,
  owner: { org_id: string; token_id: string; id?: string },
): Promise<readonly string[]> {
  let query = tx
    .updateTable("approval")
    .set({ status: "expired", expires_at: sql`least(expires_at, now())` })
    .where(({ and }) => and({ org_id: owner.org_id, token_id: owner.token_id }))
    .where("status", "in", ["pending", "approved"]);
  if (owner.id !== undefined) query = query.where("id", "=", owner.id);
  return (await query.returning("id").execute()).map(({ id }) => id);
}

/** How a person comes to a request: by the link that was sent, or signed in, by its id. */
export type DecisionKey = { readonly linkHash: Buffer } | { readonly org_id: string; readonly id: string };

/** Returns the approval to decide, with the organization and token that asked. */
export async function selectToDecide(db: Db | Tx, key: DecisionKey, now: Date) {
  const rows = db
    .selectFrom("approval")
    .innerJoin("organization", "organization.id", "approval.org_id")
    .innerJoin("api_token", "api_token.id", "approval.token_id")
    .leftJoin("project", "project.id", "approval.project_id")
    .select([
      ...columns,
      "project.slug as project",
      statusAt(now).as("status"),
      "approval.org_id",
      "organization.slug as org_slug",
      "organization.name as org_name",
      "organization.suspended_at",
      "api_token.prefix as token_prefix",
      "api_token.role as token_role",
      sql<boolean>`api_token.revoked_at is null and (api_token.expires_at is null or api_token.expires_at > ${now})`.as(
        "token_lives",
      ),
    ]);
  if ("linkHash" in key) return rows.where("approval.link_hash", "=", key.linkHash).executeTakeFirst();
  return rows.where("approval.org_id", "=", key.org_id).where("approval.id", "=", key.id).executeTakeFirst();
}

export type LinkedApproval = NonNullable<Awaited<ReturnType<typeof selectToDecide>>>;

/** Decides a pending request; returns false when it is no longer pending. */
export async function decideApproval(
  tx: Tx,
  id: string,
  decision: { readonly status: "approved" | "denied"; readonly now: Date; readonly expires_at: Date },
): Promise<boolean> {
  const { status, now, expires_at } = decision;
  const done = await tx
    .updateTable("approval")
    .set({ status, decided_at: now, expires_at })
    .where(({ and }) => and({ id, status: "pending" }))
    .where("expires_at", ">", at(now))
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}
