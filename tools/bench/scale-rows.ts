import { sql } from "kysely";
import type { Instance } from "../../src/ports/runtime.ts";
import type { Platform } from "../../src/reconcile/platform.ts";

// Short, because one process of the bench holds the certificates of 20 edges.
const chain = "c".repeat(100);
const key = "k".repeat(240);
const startedAt = new Date();

/** The content of each project's certificate. */
export interface RowCertificate {
  readonly chain_pem: string;
  readonly key_pem: string;
}

/**
 * Adds numbered copies of the first project as rows: history, an active deployment whose replica runs on the primary, and a certificate
 * with the same content (null: none).
 */
export async function addProjects(
  { db, vault, machine }: Pick<Platform, "db" | "vault" | "machine">,
  from: number,
  to: number,
  certificate: RowCertificate | null = { chain_pem: chain, key_pem: key },
): Promise<void> {
  const copies = sql`cross join generate_series(${sql.lit(from)}, ${sql.lit(to)}) as copy(n)`;
  const first = sql`(select t, t.org_id from project t order by number limit 1)`;
  const keys = Array.from({ length: to - from + 1 }, (_, at) =>
    vault.seal(`crt_scale_${from + at}`, "certificate_key", certificate?.key_pem ?? "").toString("hex"),
  );
  await db.transaction().execute(async (tx) => {
    // Without triggers and foreign keys, which would take long; the triggers' rows are inserted below.
    await sql`set local session_replication_role = replica`.execute(tx);
    await sql`insert into project overriding system value select (jsonb_populate_record(p.t, jsonb_build_object(
        'id', 'prj_scale_' || n, 'number', 1000000 + n, 'slug', 'scale-' || n, 'hostname', 'scale-' || n || '.apps.test'))).*
      from ${first} p ${copies}`.execute(tx);
    await sql`insert into build select (jsonb_populate_record(b.t, jsonb_build_object(
        'id', 'bld_scale_' || n || '_' || k, 'project_id', 'prj_scale_' || n, 'number', k))).*
      from (select t from build t where status = 'succeeded' limit 1) b ${copies} cross join generate_series(1, 3) as build_number(k)`.execute(
      tx,
    );
    // Later than the platform's start: for older deployments the platform would compare branches with repositories, which these projects
    // lack.
    await sql`insert into deployment select (jsonb_populate_record(d.t, jsonb_build_object(
        'id', 'dep_scale_' || n || '_' || k, 'project_id', 'prj_scale_' || n, 'number', k, 'build_id', 'bld_scale_' || n || '_' || k,
        'status', case k when 3 then 'active' else 'retired' end, 'activated_at', now() + interval '1 day'))).*
      from (select t from deployment t where status = 'active' limit 1) d ${copies} cross join generate_series(1, 3) as deployment_number(k)`.execute(
      tx,
    );
    await sql`insert into replica (org_id, project_id, deployment_id, ordinal, attempt, ready_attempt, state, machine, host, port)
      select p.org_id, 'prj_scale_' || n, 'dep_scale_' || n || '_3', 0, 1, 1, 'running', ${machine},
        '10.0.' || (n / 250) || '.' || (n % 250), 3000 from ${first} p ${copies}`.execute(tx);
    if (certificate !== null)
      await sql`insert into certificate (id, hostname, challenge, chain_pem, sealed_key, not_before, not_after, status, wanted, next_attempt_at)
      select 'crt_scale_' || n, 'scale-' || n || '.apps.test', 'http-01', ${certificate.chain_pem}, decode((${keys}::text[])[n - ${sql.lit(from - 1)}], 'hex'),
        now(), now() + interval '90 days', 'active', true, now() + interval '60 days' from generate_series(${sql.lit(from)}, ${sql.lit(to)}) as copy(n)`.execute(
        tx,
      );
    await sql`update certificate_mark set changes = changes + 1`.execute(tx);
    await sql`insert into route_change (project_id, changed_by) select 'prj_scale_' || n, pg_current_xact_id() from ${first} p ${copies}`.execute(
      tx,
    );
  });
  await sql`analyze`.execute(db);
}

/** Returns the replica of such a project as the runtime reports it. */
export function addedInstance(number: number): Instance {
  return {
    ...{ workload_id: addedDeployment(number), project_id: addedProject(number), image_ref: "sha256:0", ordinal: 0 },
    ...{ attempt: 1, state: "running", address: { host: "10.0.0.1", port: 3000 }, started_at: startedAt },
    ...{ output_mark: "", exit: null },
  };
}

export const addedHostname = (number: number): string => `scale-${number}.apps.test`;
export const addedProject = (number: number): string => `prj_scale_${number}`;
export const addedDeployment = (number: number): string => `dep_scale_${number}_3`;
