import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import type { DomainRow } from "./queries.ts";
import type { DnsResult } from "./rules.ts";

/**
 * Claims hostnames that are due, so that no other control plane looks them up too: the first of each organization, then the second of each,
 * so that one with many names on slow name servers delays its own. Returns their ids.
 */
export async function takeDueChecks(db: Db, most: number): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    update domain set check_begun_at = now(), next_check_at = now() + interval '1 minute'
    where id in (select id from domain where next_check_at <= now() and id in (
      select id from (select id, next_check_at, row_number() over (partition by org_id order by next_check_at) as turn
        from domain where next_check_at <= now()) due order by turn, next_check_at limit ${most}) for update skip locked)
    returning id`.execute(db);
  return rows.map((row) => row.id);
}

/** Claims a project's hostnames whose last lookup is older than `ageMs`. Returns their ids. */
export async function takeStaleChecks(
  db: Db,
  project: { readonly org_id: string; readonly project_id: string },
  ageMs: number,
): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    update domain set check_begun_at = now()
    where org_id = ${project.org_id} and project_id = ${project.project_id}
      and (check_begun_at is null or check_begun_at <= now() - make_interval(secs => ${ageMs / 1000}))
    returning id`.execute(db);
  return rows.map((row) => row.id);
}

/** What a DNS result changed for the edge and for people. */
export type Change = "served" | "lost" | "recovered" | "none";

/** Stores a DNS result; returns what it changed. */
export async function writeDnsResult(tx: Tx, domain: DomainRow, evaluated: DnsResult, nextMs: number): Promise<Change> {
  const { dns_status, dns_detail, verdict } = evaluated;
  const before = await tx
    .selectFrom("domain")
    .select(["verified_at", "lost_at"])
    .where(({ and }) => and({ id: domain.id, org_id: domain.org_id }))
    .forUpdate()
    .executeTakeFirst();
  if (before === undefined) return "none";
  await tx
    .updateTable("domain")
    .set({
      dns_status,
      dns_detail,
      checked_at: sql<string>`now()`,
      next_check_at: sql<string>`now() + make_interval(secs => ${nextMs / 1000})`,
      ...(evaluated.txt_seen ? { txt_seen_at: sql<string>`now()` } : {}),
      ...(verdict === "serve" ? { verified_at: sql<string>`coalesce(verified_at, now())`, lost_at: null } : {}),
      ...(verdict === "lost" && before.verified_at !== null ? { lost_at: sql<string>`coalesce(lost_at, now())` } : {}),
    })
    .where(({ and }) => and({ id: domain.id, org_id: domain.org_id }))
    .execute();
  return changeOf(before, verdict);
}

function changeOf(
  before: { verified_at: string | null; lost_at: string | null },
  verdict: DnsResult["verdict"],
): Change {
  if (verdict === "serve" && before.verified_at === null) return "served";
  if (verdict === "serve" && before.lost_at !== null) return "recovered";
  if (verdict === "lost" && before.verified_at !== null && before.lost_at === null) return "lost";
  return "none";
}

/** Records permanently that the organization has proven this hostname. */
export async function markClaimVerified(tx: Tx, { org_id, hostname }: DomainRow): Promise<void> {
  await tx
    .updateTable("domain_claim")
    .set({ verified_at: sql<string>`now()` })
    .where(({ and }) => and({ org_id, hostname }))
    .where("verified_at", "is", null)
    .execute();
}

/** Stops serving names that have pointed elsewhere for longer than the grace time; they must be proven again. */
export async function endGrace(tx: Tx, graceMs: number) {
  return tx
    .updateTable("domain")
    .set({ verified_at: null, lost_at: null, txt_seen_at: null })
    .where("lost_at", "<=", sql<string>`now() - make_interval(secs => ${graceMs / 1000})`)
    .returning(["org_id", "project_id", "hostname"])
    .execute();
}
