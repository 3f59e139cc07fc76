import { newestVerifiedAt } from "../backups/backups.ts";
import type { HandlerPlatform } from "../context.ts";
import { awaken, databaseOf, serverOf, specOf } from "../database/database.ts";
import { hostnamesOf } from "../domains/domains.ts";
import { countRequests } from "../metrics/metrics.ts";
import type { Touched } from "./words.ts";

/** What a change to a project would affect. Null: currently unknown. */
export interface Affected {
  readonly hostnames: readonly string[];
  /** Null also when there is no database. */
  readonly database: { readonly tables: number; readonly estimated_rows: number; readonly size_bytes: number } | null;
  readonly last_verified_backup_at: string | null;
  readonly requests_last_hour: number | null;
}

type Project = { readonly org_id: string; readonly project_id: string };

/** Collects what a change to the project would affect; leaves out sources that do not respond. */
export async function affectedBy(
  platform: HandlerPlatform,
  project: Project,
  table: string | null = null,
): Promise<Affected> {
  const { org_id, project_id } = project;
  const hourAgo = new Date(platform.clock.now().getTime() - 3_600_000);
  const [hostnames, database, verifiedAt, requests_last_hour] = await Promise.all([
    hostnamesOf(platform, project),
    contentOf(platform, project, table),
    newestVerifiedAt(platform.db, org_id, project_id),
    countRequests(platform.db, project, hourAgo),
  ]);
  return { hostnames, database, last_verified_backup_at: verifiedAt ?? null, requests_last_hour };
}

/** What a request touches; a part that it does not touch is absent. */
export interface Reach extends Partial<Affected> {
  /** The table that one row is deleted from. Null: currently unknown. */
  readonly table?: Affected["database"];
}

/** Collects what a request touches of a project, and nothing else of it. `target` is the table, as `schema.name`, where it touches one. */
export async function touchedBy(
  platform: HandlerPlatform,
  project: Project,
  { touches, target }: { readonly touches: readonly Touched[]; readonly target: string | null },
): Promise<Reach> {
  if (touches.length === 0) return {};
  const touched = (part: Touched) => touches.includes(part);
  const { hostnames, database, last_verified_backup_at, requests_last_hour } = await affectedBy(
    platform,
    project,
    touched("table") ? target : null,
  );
  return {
    ...(touched("hostnames") && { hostnames }),
    ...(touched("database") && { database }),
    ...(touched("table") && { table: database?.tables === 1 ? database : null }),
    ...(touched("backup") && { last_verified_backup_at }),
    ...(touched("requests") && { requests_last_hour }),
  };
}

const mostTables = 500;

async function contentOf(
  platform: HandlerPlatform,
  project: Project,
  only: string | null,
): Promise<Affected["database"]> {
  const row = await awaken(platform, await databaseOf(platform.db, project.org_id, project.project_id));
  const server = row && serverOf(row);
  if (!server) return null;
  const query = { sort: "size_bytes", dir: "desc", limit: mostTables, offset: 0 } as const;
  try {
    const looked = await platform.ports.tenantDatabase.listTables(
      { spec: specOf(platform.vault, row), tls: platform.ports.postgresHost.tlsOf(row.id), ...server },
      query,
    );
    if (looked.outcome !== "done") return null;
    const { total } = looked.found;
    const tables = looked.found.tables.filter(({ schema, name }) => only === null || only === `${schema}.${name}`);
    const sum = (pick: (table: (typeof tables)[number]) => number | null) =>
      tables.reduce((before, table) => before + Math.max(0, pick(table) ?? 0), 0);
    return {
      tables: only === null ? total : tables.length,
      estimated_rows: sum((table) => table.estimated_rows),
      size_bytes: sum((table) => table.size_bytes),
    };
  } catch {
    // The database is stopped or unreachable, so its content is unknown.
    return null;
  }
}
