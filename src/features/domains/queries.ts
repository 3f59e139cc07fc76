import { sql } from "kysely";
import type { Result } from "../../contract/routes.ts";
import type { CertificateStatus } from "../../contract/states.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";

type CertificateStep = Result<"domains.attach">["ssl_steps"][number];

/** A hostname with the proof that its DNS records need. */
export type DomainRow = Awaited<ReturnType<typeof domainsOf>>[number];

/** Returns the project's hostnames, newest first. `ownZones`: zones in which the platform itself has names. */
export async function domainsOf(db: Db | Tx, { org_id, project_id }: ProjectKey, ownZones: readonly string[]) {
  return shown(db, ownZones)
    .where(({ and }) => and({ "domain.org_id": org_id, "domain.project_id": project_id }))
    .orderBy("domain.id", "desc")
    .execute();
}

export async function domainOf(
  db: Db | Tx,
  { org_id, project_id }: ProjectKey,
  domain: { readonly hostname: string; readonly ownZones: readonly string[] },
): Promise<DomainRow | undefined> {
  return shown(db, domain.ownZones)
    .where(({ and }) =>
      and({ "domain.org_id": org_id, "domain.project_id": project_id, "domain.hostname": domain.hostname }),
    )
    .executeTakeFirst();
}

/** Returns hostnames by id, of any organization, for the platform's own checks. */
export async function domainsById(db: Db, ids: readonly string[], ownZones: readonly string[]): Promise<DomainRow[]> {
  return ids.length === 0
    ? []
    : shown(db, ownZones)
        .where("domain.id", "in", [...ids])
        .execute();
}

function shown(db: Db | Tx, ownZones: readonly string[]) {
  return db
    .selectFrom("domain")
    .innerJoin("project", "project.id", "domain.project_id")
    .innerJoin("domain_claim", (join) =>
      join.onRef("domain_claim.org_id", "=", "domain.org_id").onRef("domain_claim.hostname", "=", "domain.hostname"),
    )
    .leftJoin("domain as other", "other.id", "domain.redirect_id")
    .leftJoin("certificate", "certificate.hostname", "domain.hostname")
    .select([
      "domain.id",
      "domain.org_id",
      "domain.project_id",
      "domain.hostname",
      "domain.zone",
      "domain.dns_status",
      "domain.dns_detail",
      "domain.txt_seen_at",
      "domain.checked_at",
      "domain.verified_at",
      "domain.lost_at",
      "other.hostname as redirect_to",
      certificateStatus.as("ssl_status"),
      "certificate.detail as ssl_detail",
      certificateNextAttempt.as("ssl_next_attempt_at"),
      certificateSteps.as("ssl_steps"),
      "domain.created_at",
      "domain_claim.proof",
      "project.hostname as default_hostname",
      needsTxt(ownZones).as("needs_txt"),
    ]);
}

// While a certificate is valid its status is active, whatever happens to its renewal; the first one, once edges have loaded it.
const certificateStatus = sql<CertificateStatus>`case when certificate.chain_pem is null
    or (certificate.status = 'issuing' and certificate.confirmed_at is null) then coalesce(certificate.status, 'pending')
  when certificate.not_after > now() then 'active' when certificate.status = 'issuing' then 'issuing' else 'failed' end`;
const certificateNextAttempt = sql<
  string | null
>`case when certificate.status <> 'issuing' then certificate.next_attempt_at end`;
const certificateSteps = sql<CertificateStep[]>`coalesce(certificate.steps, '[]')`;

// Requires a TXT record if another organization had this very name, has asked for it within 30 days, or served one in the same zone: a
// wildcard record may point here, and the first organization to attach a name below it would get that name. The same applies in the
// platform's own zones. Names already served need no new proof.
function needsTxt(ownZones: readonly string[]) {
  return sql<boolean>`(domain.verified_at is null and (domain.zone = any(${[...ownZones]}::text[]) or exists (
    select from domain_claim other where other.org_id <> domain.org_id
      and ((other.hostname = domain.hostname and (other.held_at is not null or other.asked_at > now() - interval '30 days'))
        or (other.zone = domain.zone and other.verified_at is not null)))))`;
}

/** Locks the project, to serialise changes to its hostnames, and counts them; returns undefined when the project is deleted. */
export async function lockDomains(tx: Tx, project: ProjectKey): Promise<number | undefined> {
  const { org_id, project_id } = project;
  const locked = await lockProject(tx, project);
  if (locked === undefined || locked.deleted_at !== null) return undefined;
  const { count } = await tx
    .selectFrom("domain")
    .select(sql<number>`count(*)`.as("count"))
    .where(({ and }) => and({ org_id, project_id }))
    .executeTakeFirstOrThrow();
  return count;
}

export async function attachedHostnames(db: Db): Promise<readonly string[]> {
  const rows = await db.selectFrom("domain").select("hostname").orderBy("hostname").execute();
  return rows.map(({ hostname }) => hostname);
}

/** Returns whether an attached hostname of any organization is served, and what its records lack. */
export async function domainNamed(db: Db, hostname: string) {
  return db
    .selectFrom("domain")
    .select(["verified_at", "dns_detail"])
    .where("hostname", "=", hostname)
    .executeTakeFirst();
}

/** Returns who has a hostname now, in any organization. The result must not leave the server. */
export async function holderOf(db: Db | Tx, hostname: string) {
  return db
    .selectFrom("domain")
    .select(["id", "org_id", "project_id"])
    .where("hostname", "=", hostname)
    .executeTakeFirst();
}

/** Returns the id of the project's hostname, and to and from which of its names requests are redirected. */
export async function redirectsOf(tx: Tx, { org_id, project_id }: ProjectKey, hostname: string) {
  return tx
    .selectFrom("domain")
    .leftJoin("domain as target", "target.id", "domain.redirect_id")
    .leftJoin("domain as source", "source.redirect_id", "domain.id")
    .select(["domain.id", "target.hostname as to", "source.hostname as from"])
    .where(({ and }) => and({ "domain.org_id": org_id, "domain.project_id": project_id, "domain.hostname": hostname }))
    .limit(1)
    .executeTakeFirst();
}

/** Redirects a hostname of the project to another, or no longer; returns whether that changed anything. */
export async function redirectDomain(
  tx: Tx,
  { org_id, project_id }: ProjectKey,
  { hostname, redirect_id }: { readonly hostname: string; readonly redirect_id: string | null },
): Promise<boolean> {
  const done = await tx
    .updateTable("domain")
    .set({ redirect_id })
    .where(({ and }) => and({ org_id, project_id, hostname }))
    .where("redirect_id", "is distinct from", redirect_id)
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export interface NewDomain extends ProjectKey, Columns<"domain", "id" | "hostname" | "zone" | "dns_detail"> {
  readonly txt_seen_at: Date | null;
}

/** Inserts the hostname unless a project has it; returns whether it was inserted. Waits for a concurrent insert of the same name. */
export async function insertDomain(tx: Tx, domain: NewDomain): Promise<boolean> {
  const done = await tx
    .insertInto("domain")
    .values({ ...domain, check_begun_at: sql<string>`now()` })
    .onConflict((on) => on.column("hostname").doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

export type NewClaim = Columns<"domain_claim", "org_id" | "hostname" | "zone" | "proof">;

/** Records that the organization asked for a hostname, and returns the proof for its TXT record. `held`: it has it from now on. */
export async function claim(tx: Tx, wanted: NewClaim, held: boolean): Promise<string> {
  const held_at = held ? sql<string>`now()` : null;
  const row = await tx
    .insertInto("domain_claim")
    .values({ ...wanted, held_at })
    .onConflict((on) =>
      on
        .columns(["org_id", "hostname"])
        .doUpdateSet({ asked_at: sql<string>`now()`, held_at: held ? held_at : sql<string>`domain_claim.held_at` }),
    )
    .returning("proof")
    .executeTakeFirstOrThrow();
  return row.proof;
}

/** Detaches the hostname; returns the id of its row, or undefined when the project did not have it. */
export async function deleteDomain(
  tx: Tx,
  { org_id, project_id }: ProjectKey,
  hostname: string,
): Promise<string | undefined> {
  const done = await tx
    .deleteFrom("domain")
    .where(({ and }) => and({ org_id, project_id, hostname }))
    .returning("id")
    .executeTakeFirst();
  return done?.id;
}
