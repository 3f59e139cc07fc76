import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { superuserConnection } from "../../src/adapters/postgres-host-local/superuser-connection.ts";
import { pathsIn } from "../../src/daemon/config.ts";
import { newId } from "../../src/kit/ids.ts";
import { silentLog } from "../../src/kit/log.ts";
import { openDatabase, type Db } from "../../src/store/database.ts";
import { openVault, type Vault } from "../../src/store/vault.ts";
import { openWakeups, type Wakeups } from "../../src/store/wakeups.ts";
import { createApp, nodeApp, startPlatform, type TestPlatform } from "../../test/e2e/platform.ts";
import type { TestOrganization } from "../../test/support/test-platform.ts";
import { testProject } from "../../test/support/fixtures.ts";
import type { HandlerPlatform } from "../../src/features/context.ts";

/** A whole platform with one pushed application and its database, to which more projects are added than could be pushed. */
export interface GrownPlatform {
  readonly platform: TestPlatform;
  readonly db: Db;
  readonly wakeups: Wakeups;
  readonly vault: Vault;
  /** The slug of the pushed application. */
  readonly slug: string;
  /** Adds projects whose active deployment is a copy of the pushed one; returns their slugs. */
  add(count: number, where: "running here" | "running elsewhere"): Promise<readonly string[]>;
  close(): Promise<void>;
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
  const add: GrownPlatform["add"] = async (count, where) => {
    const slugs: string[] = [];
    for (let made = 0; made < count; made += 1)
      slugs.push(await copyProject({ db, vault } as HandlerPlatform, paths.releases, where === "running here"));
    await wakeups.send(db, "apps");
    return slugs;
  };
  return {
    ...{ platform, db, wakeups, vault, slug, add },
    async close() {
      await wakeups.close();
      await close();
      await platform.destroy();
    },
  };
}

/** Creates a project with the pushed application's active image. Without `isHere`, a replica on another machine serves it. */
async function copyProject(platform: HandlerPlatform, releases: string, isHere: boolean): Promise<string> {
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
  if (isHere) cpSync(join(releases, source.project_id), join(releases, project.id), { recursive: true });
  const sealed_variables = vault.seal(project.id, `deployment:${id}`, "{}");
  await db
    .insertInto("deployment")
    .values({ ...source, ...owner, ...json, id, build_id, sealed_variables } as never)
    .execute();
  if (!isHere) {
    const start = { ordinal: 0, attempt: 1, ready_attempt: 1, state: "running" };
    const replica = { org_id: source.org_id, deployment_id: id, machine: "elsewhere", host: "192.0.2.1", port: 3000 };
    await db
      .insertInto("replica")
      .values({ ...start, ...replica } as never)
      .execute();
  }
  await db
    .updateTable("project")
    .set({ hostname: `${project.slug}.localhost` })
    .where("id", "=", project.id)
    .execute();
  return project.slug;
}
