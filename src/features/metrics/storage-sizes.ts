import { sql } from "kysely";
import type { Db } from "../../store/database.ts";

/** Keeps how much lies in a project's storage folder. */
export async function saveStorageSize(db: Db, projectId: string, sizeBytes: number): Promise<void> {
  await sql`update storage_size set size_bytes = ${sizeBytes}, measured_at = now() where project_id = ${projectId}`.execute(
    db,
  );
}

/** Takes one project whose storage folder is to be measured; undefined when none is due. Nobody else takes it within the period. */
export async function takeDueStorage(
  db: Db,
  everySeconds: number,
): Promise<{ readonly project_id: string; readonly project_number: number } | undefined> {
  await sql`
    insert into storage_size (project_id, org_id, next_at) select p.id, p.org_id, now() from project p
    where not exists (select 1 from storage_size s where s.project_id = p.id) on conflict do nothing`.execute(db);
  const { rows } = await sql<{ project_id: string; project_number: number }>`
    update storage_size s set next_at = now() + make_interval(secs => ${everySeconds} * (0.9 + 0.2 * random()))
    from project p where p.id = s.project_id and s.project_id = (select project_id from storage_size where next_at <= now() order by next_at limit 1 for update skip locked)
    returning s.project_id, p.number as project_number`.execute(db);
  return rows[0];
}
