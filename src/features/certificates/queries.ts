import { sql } from "kysely";
import { newId } from "../../kit/ids.ts";
import type { ChallengeKind } from "../../ports/certificate-issuer.ts";
import { changedProjects } from "../../store/changed-projects.ts";
import { provenNow } from "../../store/proven-time.ts";
import type { Columns, Db } from "../../store/database.ts";
import { claimRow, holds, type InProgress, type Lease } from "../../store/leases.ts";

export interface WantedName {
  readonly hostname: string;
  readonly challenge: ChallengeKind;
  /** The registered domain, for which authorities limit new certificates. */
  readonly zone: string;
  /** The organization that the name belongs to; null for the platform's own names. */
  readonly org_id: string | null;
}

export interface HostnameChanges {
  /** The transaction snapshot of this read; the next read returns only what changed after it. */
  readonly snapshot: string;
  readonly projects: readonly {
    readonly project_id: string;
    readonly org_id: string;
    readonly hostnames: readonly string[];
  }[];
}

/**
 * Returns the hostnames of the projects that changed since the snapshot, or of all projects when `since` is null. Includes the attached
 * hostnames of living projects and, with `defaults`, the default ones of those that have been live.
 */
export async function changedHostnames(db: Db, since: string | null, defaults: boolean): Promise<HostnameChanges> {
  const { rows } = await sql<HostnameChanges>`
    with changed as materialized (${changedProjects(since)})
    select pg_current_snapshot()::text as snapshot,
      coalesce(json_agg(json_build_object('project_id', c.project_id, 'org_id', owned.org_id, 'hostnames', n.hostnames)), '[]') as projects
    from changed c join project owned on owned.id = c.project_id cross join lateral (select array(
      select d.hostname from domain d join project p on p.id = d.project_id and p.org_id = d.org_id
        where p.id = c.project_id and p.deleted_at is null
      union select hostname from project where id = c.project_id and ${defaults} and deleted_at is null and purged_at is null and ${wasLive}
      union select e.hostname from earlier_name e join project p on p.id = e.project_id
        where p.id = c.project_id and ${defaults} and p.deleted_at is null and ${wasLive}) as hostnames offset 0) n`.execute(
    db,
  );
  return rows[0] as HostnameChanges;
}

const wasLive = sql`exists (select from deployment where project_id = c.project_id and org_id = owned.org_id and activated_at is not null)`;

/** Creates a row for each wanted name, marks the names that are no longer wanted, and deletes rows that are of no further use. */
export async function syncWanted(db: Db, wanted: readonly WantedName[]): Promise<void> {
  const given = sql`jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as g(hostname text, challenge text, zone text, org_id text)`;
  const { rows } = await sql<WantedName>`
    select g.* from ${given} where not exists (select from certificate c where c.hostname = g.hostname)`.execute(db);
  if (rows.length > 0)
    await db
      .insertInto("certificate")
      .values(rows.map((row) => ({ ...row, id: newId("crt") })))
      .onConflict((on) => on.column("hostname").doNothing())
      .execute();
  await sql`update certificate c set wanted = g.hostname is not null, zone = coalesce(g.zone, c.zone),
      org_id = case when g.hostname is null then c.org_id else g.org_id end
    from certificate earlier left join ${given} on g.hostname = earlier.hostname
    where earlier.id = c.id and (c.wanted <> (g.hostname is not null)
      or (g.hostname is not null and (c.org_id, c.zone) is distinct from (g.org_id, g.zone)))`.execute(db);
  // A row with a recent order stays, so that detaching its name neither hides the order from `recentOrders` and `recentFirsts` nor ends a pause.
  await sql`delete from certificate where not wanted and (not_after is null or not_after < ${provenNow})
    and (ordered_at is null or ordered_at < ${provenNow} - ${orderWindow}) and (lease_until is null or lease_until < now())
    and (first_issued_at is null or first_issued_at < ${provenNow} - ${firstsWindow})`.execute(db);
  await sql`delete from acme_challenge where created_at < now() - interval '1 day'`.execute(db);
}

/** A certificate to order, claimed by one process at a time. */
export interface DueCertificate
  extends WantedName, Columns<"certificate", "id" | "fence" | "failures" | "not_after" | "created_at"> {
  /** Null: the name never had a certificate. */
  readonly first_issued_at: string | null;
}

export function claimDue(db: Db, owner: string, inProgress: InProgress): Promise<DueCertificate | undefined> {
  return claimRow<DueCertificate>(db, {
    ...{ table: "certificate", owner, inProgress, order: "next_attempt_at" },
    due: sql`q.wanted and q.next_attempt_at <= now()`,
    returning: sql`t.id, t.hostname, t.challenge, coalesce(t.zone, t.hostname) as zone, t.org_id, t.fence, t.failures, t.not_after,
      t.first_issued_at, t.created_at`,
  });
}

/** The result of an attempt, or the start of an order. */
export interface AttemptRecord {
  readonly status: "pending" | "issuing" | "active" | "failed";
  readonly detail: string;
  readonly failures: number;
  readonly nextMs: number;
}

/** Records an attempt, unless another process has claimed the row meanwhile. */
export async function saveAttempt(db: Db, lease: Lease, { nextMs, ...record }: AttemptRecord): Promise<void> {
  const ends = record.status !== "issuing";
  await db
    .updateTable("certificate")
    .set({
      ...record,
      // An attempt starts with its order and resets the steps; its result is appended to them.
      steps: ends ? withStep(record, "certificate.status = 'issuing'") : withStep(record, "false"),
      next_attempt_at: sql<string>`now() + make_interval(secs => ${nextMs / 1000})`,
      ...(record.status === "active" ? { confirmed_at: sql<string>`coalesce(confirmed_at, now())` } : {}),
      ...(ends ? { lease_until: null, lease_owner: null } : { ordered_at: sql<string>`now()` }),
    })
    .where(holds(lease))
    .execute();
}

/** Records what a running order waits for. */
export async function saveStep(db: Db, lease: Lease, detail: string): Promise<void> {
  const steps = withStep({ status: "issuing", detail }, "true");
  await db.updateTable("certificate").set({ detail, steps }).where(holds(lease)).execute();
}

/** Appends a step if `goesOn` holds, else starts a new list with it. */
function withStep({ status, detail }: Pick<AttemptRecord, "status" | "detail">, goesOn: Condition) {
  return sql<string>`(case when ${sql.raw(goesOn)} then certificate.steps else '[]' end) || jsonb_build_array(jsonb_build_object(
    'at', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'status', ${status}::text, 'detail', ${detail}::text))`;
}

type Condition = "certificate.status = 'issuing'" | "true" | "false";

export interface IssuedCertificate {
  readonly chain_pem: string;
  readonly sealed_key: Buffer;
  readonly not_before: Date;
  readonly not_after: Date;
}

/** Replaces the old certificate with a new one. */
export async function saveIssued(db: Db, lease: Lease, issued: IssuedCertificate): Promise<void> {
  const first_issued_at = sql<string>`coalesce(first_issued_at, now())`;
  await db
    .updateTable("certificate")
    .set({ ...issued, first_issued_at })
    .where(holds(lease))
    .execute();
}

// Let's Encrypt's window for its limit of orders.
const orderWindow = sql`interval '3 hours'`;
// Let's Encrypt's window for its limit of new certificates for a registered domain. Renewals do not count.
const firstsWindow = sql`interval '7 days'`;

/** How many orders were started in the last three hours; authorities limit that number. */
export interface RecentOrders {
  readonly all: number;
  /** For names of the given organization. */
  readonly own: number;
  /** Whether other organizations exist that may order. */
  readonly others: boolean;
}

/** Counts orders. The organization is null for the platform's own names. */
export async function recentOrders(db: Db, orgId: string | null): Promise<RecentOrders> {
  const { rows } = await sql<RecentOrders>`
    select count(*)::int as all, (count(*) filter (where org_id = ${orgId}))::int as own,
      exists (select from organization where id <> ${orgId} and suspended_at is null) as others
    from certificate where ordered_at > now() - ${orderWindow}`.execute(db);
  return rows[0] as RecentOrders;
}

/** The first certificates of names below one registered domain within seven days, those being ordered included. */
export interface RecentFirsts extends RecentOrders {
  /** When the oldest of all, and the oldest of the organization, will be seven days old; null if there is none. */
  readonly all_until: string | null;
  readonly own_until: string | null;
}

/** Counts first certificates below the name's registered domain, without the name itself. */
export async function recentFirsts(
  db: Db,
  { id, zone, org_id }: Pick<DueCertificate, "id" | "zone" | "org_id">,
): Promise<RecentFirsts> {
  const { rows } = await sql<RecentFirsts>`
    select count(*)::int as all, (count(*) filter (where org_id = ${org_id}))::int as own,
      exists (select from organization where id <> ${org_id} and suspended_at is null) as others,
      min(first_issued_at) + ${firstsWindow} as all_until,
      min(first_issued_at) filter (where org_id = ${org_id}) + ${firstsWindow} as own_until
    from certificate where zone = ${zone} and id <> ${id} and (first_issued_at > now() - ${firstsWindow}
      or (first_issued_at is null and status = 'issuing' and lease_until > now()))`.execute(db);
  return rows[0] as RecentFirsts;
}

/** The first certificates of previews within seven days, and when the oldest will be seven days old. */
export interface PreviewFirsts {
  readonly all: number;
  readonly all_until: string | null;
}

/** Counts first certificates of previews, without the name itself; undefined when that is not a preview's. */
export async function previewFirsts(
  db: Db,
  { id, hostname }: Pick<DueCertificate, "id" | "hostname">,
): Promise<PreviewFirsts | undefined> {
  const { rows } = await sql<PreviewFirsts & { is_preview: boolean }>`
    select count(*)::int as all, min(c.first_issued_at) + ${firstsWindow} as all_until,
      exists (select from project where hostname = ${hostname} and purged_at is null and preview_of is not null) as is_preview
    from certificate c where c.id <> ${id} and exists (select from project where hostname = c.hostname and preview_of is not null)
      and (c.first_issued_at > now() - ${firstsWindow} or (c.first_issued_at is null and c.status = 'issuing' and c.lease_until > now()))`.execute(
    db,
  );
  return rows[0]?.is_preview === true ? rows[0] : undefined;
}

export async function accountOf(db: Db, directory: string) {
  return db
    .selectFrom("acme_account")
    .select(["directory", "sealed_key", "url"])
    .where("directory", "=", directory)
    .executeTakeFirst();
}

/** Stores the key of a new account; keeps the account that another process has stored at the same time. */
export async function insertAccount(db: Db, directory: string, sealed_key: Buffer): Promise<void> {
  await db
    .insertInto("acme_account")
    .values({ directory, sealed_key, url: null })
    .onConflict((on) => on.column("directory").doNothing())
    .execute();
}

export async function saveAccountUrl(db: Db, directory: string, url: string): Promise<void> {
  await db.updateTable("acme_account").set({ url }).where("directory", "=", directory).execute();
}

/** Deletes an account that the authority no longer accepts, unless another one (a different `url`) was registered meanwhile. */
export async function deleteAccount(db: Db, directory: string, url: string | null): Promise<void> {
  await db
    .deleteFrom("acme_account")
    .where("directory", "=", directory)
    .where("url", "is not distinct from", url)
    .execute();
}

export async function insertChallenge(
  db: Db,
  challenge: { token: string; hostname: string; answer: string },
): Promise<void> {
  await db
    .insertInto("acme_challenge")
    .values(challenge)
    .onConflict((on) => on.column("token").doUpdateSet(challenge))
    .execute();
}

export async function deleteChallenge(db: Db, token: string): Promise<void> {
  await db.deleteFrom("acme_challenge").where("token", "=", token).execute();
}

/** Returns the answer to an ACME challenge. The hostname of the request does not matter, because the token cannot be guessed. */
export async function challengeAnswer(db: Db, token: string): Promise<string | undefined> {
  const row = await db.selectFrom("acme_challenge").select("answer").where("token", "=", token).executeTakeFirst();
  return row?.answer;
}

/** Returns a text that changes whenever other certificates are to be served: with each change of the rows, and when the next certificate expires. */
export async function certificatesMark(db: Db): Promise<string> {
  const { rows } = await sql<{ mark: string }>`
    select changes || ' ' || coalesce((select min(not_after) from certificate where ${serves})::text, '') as mark from certificate_mark`.execute(
    db,
  );
  return rows[0]?.mark ?? "";
}

/** Returns the certificates that are served now. `version` changes with each change of the row. */
export async function servingCertificates(db: Db) {
  const { rows } = await sql<{ id: string; hostname: string; version: string }>`
    select id, hostname, xmin::text as version from certificate where ${serves} order by id`.execute(db);
  return rows;
}

export async function sealedCertificates(db: Db, ids: readonly string[]) {
  if (ids.length === 0) return [];
  const { rows } = await sql<{ id: string; hostname: string; chain_pem: string; sealed_key: Buffer }>`
    select id, hostname, chain_pem, sealed_key from certificate where id = any(${ids}::text[]) and ${serves}`.execute(
    db,
  );
  return rows;
}

const serves = sql`wanted and chain_pem is not null and not_after > now()`;

export async function plannedRenewals(db: Db) {
  const { rows } = await sql<{ id: string; chain_pem: string; not_after: string; next_attempt_at: string }>`
    select id, chain_pem, not_after, next_attempt_at from certificate
    where ${serves} and status = 'active' and next_attempt_at > now() order by next_attempt_at`.execute(db);
  return rows;
}

/** Moves a planned renewal to an earlier time, unless the renewal has started meanwhile. */
export async function forwardRenewal(db: Db, id: string, change: { at: Date; detail: string }): Promise<void> {
  await db
    .updateTable("certificate")
    .set({ next_attempt_at: change.at, detail: change.detail })
    .where(({ and }) => and({ id, status: "active" }))
    .where("next_attempt_at", ">", change.at.toISOString())
    .execute();
}
