import { sql, type Selectable, type UpdateObject } from "kysely";
import { limits } from "../../contract/limits.ts";
import type { DeploymentStatus } from "../../contract/states.ts";
import type { PreviewContent } from "../../contract/projects.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { provenNow } from "../../store/proven-time.ts";
import { readTogether } from "../../store/read-together.ts";
import type { Reach } from "../../store/within.ts";
import type { Tables } from "../../store/tables.ts";
import { healthColumns, healthJoins, type HealthFacts } from "../health/health.ts";

const columns = [
  "project.id",
  "project.org_id",
  "project.number",
  "project.slug",
  "project.name",
  "project.hostname",
  "project.port",
  "project.health_path",
  "project.start_seconds",
  "project.sleep_after_minutes",
  "project.root",
  "project.watch",
  "project.replicas",
  "project.storage",
  "project.maintenance_since",
  "project.maintenance_message",
  "project.deploy_branch",
  "project.previews",
  "project.preview_variables",
  "project.preview_data",
  "project.agents",
  "project.preview_of",
  "project.git_branch",
  "project.preview_expires_at",
  "project.created_at",
  "project.updated_at",
  "project.deleted_at",
  "project.purged_at",
] as const;

export type ProjectRow = Pick<
  Selectable<Tables["project"]>,
  (typeof columns)[number] extends `project.${infer C}` ? C & keyof Tables["project"] : never
>;

/** A former name of a project, valid until it expires. */
export interface EarlierName {
  readonly slug: string;
  readonly hostname: string;
  readonly until: string;
}

export interface ShownProject extends Omit<ProjectRow, "number" | "purged_at">, Omit<HealthFacts, keyof ProjectRow> {
  readonly active_id: string | null;
  readonly active_number: number | null;
  readonly active_status: DeploymentStatus | null;
  readonly active_commit: string | null;
  readonly active_activated_at: string | null;
  /** The newest commit of the branch that went live; null when the active deployment came from that. */
  readonly newest_commit: string | null;
  readonly earlier_names: readonly EarlierName[];
  readonly follows: boolean;
  /** The slug of the project that a preview belongs to. */
  readonly parent_slug: string | null;
}

// Plain SQL, because these are the most frequent queries: measured, building the text for each call costs a sixth of a request.
const shown = `
  select ${healthColumns}, p.name, p.hostname, p.port, p.health_path, p.start_seconds, p.sleep_after_minutes, p.root, p.watch, p.replicas, p.storage, p.maintenance_message, p.deploy_branch, p.previews, p.preview_variables, p.preview_data, p.agents, p.preview_of, p.git_branch, p.preview_expires_at, p.created_at, p.updated_at, p.deleted_at,
    a.id as active_id, a.number as active_number, a.status as active_status, a.commit as active_commit, a.activated_at as active_activated_at,
    case when a.trigger not in ('push', 'upload', 'follow') then (select x.commit from deployment x join build b on b.id = x.build_id
      where x.project_id = p.id and x.trigger in ('push', 'upload', 'follow') and x.activated_at is not null and b.branch = coalesce(p.deploy_branch, 'main')
      order by x.number desc limit 1) end as newest_commit,
    (select coalesce(jsonb_agg(jsonb_build_object('slug', e.slug, 'hostname', e.hostname, 'until',
      to_char(date_trunc('milliseconds', e.expires_at at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) order by e.expires_at desc), '[]')
      from earlier_name e where e.project_id = p.id) as earlier_names,
    f.id is not null as follows, (select o.slug from project o where o.id = p.preview_of) as parent_slug
  from project p ${healthJoins} left join project_follow f on f.project_id = p.id`;
const aloneBySlug = `select ${columns.join(", ")} from project where org_id = $1 and slug = $2 and purged_at is null`;
const shownBySlug = `${shown} where p.org_id = $1 and p.slug = $2 and p.purged_at is null`;
const shownOfOrganization = `${shown} where p.org_id = $1 and p.purged_at is null and ($2 or p.deleted_at is null)
  and ($3::text[] is null or p.id = any($3)) and ($4 or p.preview_of is null) order by p.id desc`;

export async function showProject(db: Db | Tx, orgId: string, slug: string): Promise<ShownProject | undefined> {
  return findBySlug<ShownProject>(db, shownBySlug, [orgId, slug]);
}

/** Finds a project by its present name, else by an earlier one. Querying both at once costs twice as much. */
async function findBySlug<Found>(
  db: Db | Tx,
  text: string,
  [orgId, slug]: [string, string],
): Promise<Found | undefined> {
  const find = async (name: string) => (await readTogether<Found>(db, text, [orgId, name]))[0];
  const found = await find(slug);
  if (found !== undefined) return found;
  const now = await db
    .selectFrom("earlier_name")
    .innerJoin("project", "project.id", "earlier_name.project_id")
    .select("project.slug")
    .where(({ and }) => and({ "earlier_name.org_id": orgId, "earlier_name.slug": slug }))
    .executeTakeFirst();
  return now && find(now.slug);
}

/** Returns the projects that a caller reaches with their active deployments, newest first. */
export async function listProjects(
  db: Db | Tx,
  { org_id, project_ids }: Reach,
  options: { readonly deleted: boolean; readonly previews: boolean },
): Promise<readonly ShownProject[]> {
  return readTogether(db, shownOfOrganization, [org_id, options.deleted, project_ids, options.previews]);
}

export async function selectProject(db: Db | Tx, orgId: string, slug: string): Promise<ProjectRow | undefined> {
  return findBySlug<ProjectRow>(db, aloneBySlug, [orgId, slug]);
}

/** Identifies a project within its organization; every query names both. */
export interface ProjectKey {
  readonly org_id: string;
  readonly project_id: string;
}

/** Changes columns of a project's row. */
export async function changeProject(
  tx: Tx,
  { org_id, project_id }: ProjectKey,
  change: UpdateObject<Tables, "project">,
): Promise<void> {
  if (Object.keys(change).length === 0) return;
  await tx.updateTable("project").set(change).where("org_id", "=", org_id).where("id", "=", project_id).execute();
}

/**
 * Locks the project's row until the transaction ends. Every transaction locks in one order, so that no two wait for each other: the
 * organization, the project, then rows of the project. Serialises numbering, limits and switches of one project. Inserts that only refer
 * to the project, such as activity, do not wait.
 */
export async function lockProject(tx: Tx, { org_id, project_id }: ProjectKey): Promise<ProjectRow | undefined> {
  const query = tx.selectFrom("project").select(columns).where("org_id", "=", org_id).where("id", "=", project_id);
  return query.forNoKeyUpdate().executeTakeFirst();
}

export interface ProjectRoom {
  /** One more living project fits. */
  readonly fits: boolean;
  /** How many deleted projects it may keep, which take disk space until they are purged. */
  readonly most_deleted: number;
  /** It keeps fewer deleted projects than that. */
  readonly fits_deleted: boolean;
  readonly is_first: boolean;
}

/** Returns the organization's room for projects. Locks the organization, so that concurrent creations wait. */
export async function lockProjectLimit(tx: Tx, orgId: string): Promise<ProjectRoom> {
  const { max_projects, is_first } = await tx
    .selectFrom("organization")
    .select(["max_projects", "is_first"])
    .where("id", "=", orgId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
  const { living, deleted } = await tx
    .selectFrom("project")
    .select([
      sql<number>`count(*) filter (where deleted_at is null)`.as("living"),
      sql<number>`count(*) filter (where deleted_at is not null)`.as("deleted"),
    ])
    .where("org_id", "=", orgId)
    .where("purged_at", "is", null)
    .where("preview_of", "is", null)
    .executeTakeFirstOrThrow();
  const most_deleted = limits.deleted_projects_per_project * max_projects;
  return { fits: living < max_projects, fits_deleted: deleted < most_deleted, most_deleted, is_first };
}

export type NewProject = Columns<"project", "id" | "org_id" | "slug" | "name" | "hostname" | "sealed_cron_secret"> &
  Partial<Columns<"project", "preview_of" | "git_branch" | "deploy_branch">> & { readonly preview_expires_at?: Date };

/** Inserts a project unless its slug or hostname is taken; returns whether it was inserted. */
export async function insertProject(tx: Tx, project: NewProject): Promise<boolean> {
  const done = await tx
    .insertInto("project")
    .values(project)
    .onConflict((on) => on.doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

/** Returns whether a project has or had this hostname, and locks it until the transaction ends, so that only one can get it. */
export async function isHostnameTaken(tx: Tx, hostname: string): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`hostname ${hostname}`}, 0))`.execute(tx);
  const { rows } = await sql`
    select from earlier_name where hostname = ${hostname}
    union all select from project where hostname = ${hostname} and purged_at is null`.execute(tx);
  return rows.length > 0;
}

export interface GivenName {
  readonly slug: string;
  readonly hostname: string;
}

export async function renameProject(tx: Tx, project: ProjectKey, name: GivenName, days: number) {
  const { org_id, project_id } = project;
  await sql`
    insert into earlier_name (org_id, project_id, slug, hostname, expires_at)
    select org_id, id, slug, hostname, now() + make_interval(days => ${days}) from project where org_id = ${org_id} and id = ${project_id}`.execute(
    tx,
  );
  await changeProject(tx, project, { ...name, updated_at: sql`now()` });
}

/** Deletes an earlier name of the project and returns its hostname, so that the project can have it again. */
export async function takeBackName(
  tx: Tx,
  { org_id, project_id }: ProjectKey,
  slug: string,
): Promise<string | undefined> {
  const row = await tx
    .deleteFrom("earlier_name")
    .where(({ and }) => and({ org_id, project_id, slug }))
    .returning("hostname")
    .executeTakeFirst();
  return row?.hostname;
}

export async function countEarlierNames(tx: Tx, { org_id, project_id }: ProjectKey): Promise<number> {
  const row = await tx
    .selectFrom("earlier_name")
    .select(sql<number>`count(*)::integer`.as("count"))
    .where(({ and }) => and({ org_id, project_id }))
    .executeTakeFirstOrThrow();
  return row.count;
}

export async function deleteExpiredNames(db: Db): Promise<number> {
  const done = await sql`delete from earlier_name where expires_at <= ${provenNow}`.execute(db);
  return Number(done.numAffectedRows ?? 0);
}

export interface ProjectSettings {
  readonly port?: number | null;
  readonly health_path?: string | null;
  readonly start_seconds?: number | null;
  readonly sleep_after_minutes?: number | null;
  readonly root?: string | null;
  readonly watch?: string[] | null;
  readonly storage?: boolean;
  readonly previews?: string[] | null;
  readonly preview_variables?: string[] | null;
  readonly preview_data?: PreviewContent;
  readonly agents?: ProjectRow["agents"];
}

export async function updateSettings(tx: Tx, project: ProjectKey, settings: ProjectSettings): Promise<void> {
  await changeProject(tx, project, { ...settings, updated_at: sql`now()` });
}

/** Turns the maintenance page on. A page that is already on keeps its start time, and its text unless `message` is given. */
export async function startMaintenance(tx: Tx, project: ProjectKey, message?: string | null): Promise<void> {
  await changeProject(tx, project, {
    maintenance_since: sql`coalesce(maintenance_since, now())`,
    ...(message === undefined ? {} : { maintenance_message: message }),
  });
}

export async function endMaintenance(tx: Tx, project: ProjectKey): Promise<void> {
  await changeProject(tx, project, { maintenance_since: null, maintenance_message: null });
}

export async function setDeleted(tx: Tx, project: ProjectKey, deleted: boolean): Promise<void> {
  await changeProject(tx, project, { deleted_at: deleted ? sql`now()` : null, updated_at: sql`now()` });
}
