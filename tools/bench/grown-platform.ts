import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { superuserConnection } from "../../src/adapters/postgres-host-local/superuser-connection.ts";
import { pathsIn } from "../../src/daemon/config.ts";
import { newId } from "../../src/kit/ids.ts";
import { silentLog } from "../../src/kit/log.ts";
import { openDatabase, type Db } from "../../src/store/database.ts";
import { openVault } from "../../src/store/vault.ts";
import { openWakeups, type Wakeups } from "../../src/store/wakeups.ts";
import { createApp, nodeApp, startPlatform, type TestPlatform } from "../../test/e2e/platform.ts";
import type { TestOrganization } from "../../test/support/test-platform.ts";
import { testProject } from "../../test/support/fixtures.ts";
import type { HandlerPlatform } from "../../src/features/context.ts";

/** A whole platform with one pushed application and its database, to which more projects are added than could be pushed. */
export interface GrownPlatform extends AsyncDisposable {
  readonly platform: TestPlatform;
  readonly db: Db;
  readonly wakeups: Wakeups;
  /** The slug of the pushed application. */
  readonly slug: string;
  /** Adds the projects `scale-<from>` to `scale-<to>`, which another machine serves. */
  addRows(from: number, to: number): Promise<void>;
  /** Adds projects that run the pushed application here; returns their slugs. */
  addRunning(count: number): Promise<readonly string[]>;
}

const slug = "grown";

/** Starts a platform and pushes the application twice, so that it can be rolled back. */
export async function startGrownPlatform(
  start: () => Promise<TestPlatform & { readonly storage?: boolean }> = startPlatform,
): Promise<GrownPlatform> {
  const platform = await start();
  const app = await createApp(platform, slug, nodeApp("grown"));
  for (const text of ["grown", "grown again"]) {
    await app.commit(nodeApp(text));
    const pushed = await app.push();
    if (pushed.exitCode !== 0) throw new Error(`the push failed: ${pushed.stderr}`);
  }
  const run = readFileSync(join(platform.dataDir, "run-folder"), "utf8");
  const paths = pathsIn(platform.dataDir);
  const connection = superuserConnection({ dir: paths.ownPostgres, socketDir: join(run, "control"), port: null });
  const { db, close } = openDatabase({ connection, log: silentLog });
  const wakeups = await openWakeups({ connection, log: silentLog });
  const vault = openVault({ keyFile: paths.keyFile });
  const addRunning = async (count: number) => {
    const copy = () => copyProject({ db, vault } as HandlerPlatform, paths.releases);
    const slugs = await Array.fromAsync({ length: count }, copy);
    await wakeups.send(db, "apps");
    return slugs;
  };
  return {
    ...{ platform, db, wakeups, slug, addRunning, addRows: (from, to) => addRows(db, from, to) },
    async [Symbol.asyncDispose]() {
      await wakeups.close();
      await close();
      await platform.destroy();
    },
  };
}

/** Creates a project with the pushed application's active image. */
async function copyProject(platform: HandlerPlatform, releases: string): Promise<string> {
  const { db, vault } = platform;
  const source = await db
    .selectFrom("deployment")
    .innerJoin("project", "project.id", "deployment.project_id")
    .selectAll("deployment")
    .where("project.slug", "=", slug)
    .where("deployment.status", "=", "active")
    .executeTakeFirstOrThrow();
  const project = await testProject(platform, { id: source.org_id } as TestOrganization);
  const build = await db.selectFrom("build").selectAll().where("id", "=", source.build_id).executeTakeFirstOrThrow();
  const owner = { project_id: project.id, number: 1 };
  const build_id = newId("bld");
  const id = newId("dep");
  const json = { image: JSON.stringify(source.image), failure: null, restored_variables: null };
  await db
    .insertInto("build")
    .values({ ...build, ...owner, id: build_id, image: JSON.stringify(build.image), failure: null } as never)
    .execute();
  cpSync(join(releases, source.project_id), join(releases, project.id), { recursive: true });
  const sealed_variables = vault.seal(project.id, `deployment:${id}`, "{}");
  await db
    .insertInto("deployment")
    .values({ ...source, ...owner, ...json, id, build_id, sealed_variables } as never)
    .execute();
  await db
    .updateTable("project")
    .set({ hostname: `${project.slug}.localhost` })
    .where("id", "=", project.id)
    .execute();
  return project.slug;
}

/** Adds numbered copies of the first project as rows: history, and an active deployment whose replica runs on another machine. */
async function addRows(db: Db, from: number, to: number): Promise<void> {
  const copies = sql`cross join generate_series(${sql.lit(from)}, ${sql.lit(to)}) as copy(n)`;
  const first = sql`(select t, t.org_id from project t order by number limit 1)`;
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
    // Later than the platform's start: for older deployments the platform would compare branches with repositories, which these projects lack.
    await sql`insert into deployment select (jsonb_populate_record(d.t, jsonb_build_object(
        'id', 'dep_scale_' || n || '_' || k, 'project_id', 'prj_scale_' || n, 'number', k, 'build_id', 'bld_scale_' || n || '_' || k,
        'status', case k when 3 then 'active' else 'retired' end, 'activated_at', now() + interval '1 day'))).*
      from (select t from deployment t where status = 'active' limit 1) d ${copies} cross join generate_series(1, 3) as deployment_number(k)`.execute(
      tx,
    );
    await sql`insert into replica (org_id, project_id, deployment_id, ordinal, attempt, ready_attempt, state, machine, host, port)
      select p.org_id, 'prj_scale_' || n, 'dep_scale_' || n || '_3', 0, 1, 1, 'running', 'elsewhere',
        '10.0.' || (n / 250) || '.' || (n % 250), 3000 from ${first} p ${copies}`.execute(tx);
    await sql`insert into route_change (project_id, changed_by) select 'prj_scale_' || n, pg_current_xact_id() from ${first} p ${copies}`.execute(
      tx,
    );
  });
  await sql`analyze`.execute(db);
}
