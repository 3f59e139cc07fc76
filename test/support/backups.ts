import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { encryptTo } from "../../src/adapters/storage-age/age-storage.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import {
  createLocalPostgresHost,
  type LocalPostgresHostOptions,
} from "../../src/adapters/postgres-host-local/local-postgres-host.ts";
import { makeTestPlace } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { createDiskStorage } from "../../src/adapters/storage-disk/disk-storage.ts";
import { createPostgresTenantDatabase } from "../../src/adapters/tenant-database-postgres/postgres-tenant-database.ts";
import { databaseOf, requestDatabase, specOf, type DatabaseRow } from "../../src/features/database/database.ts";
import { formatIdentity, ownIdentity } from "../../src/kit/processes.ts";
import { silentLog } from "../../src/kit/log.ts";
import type { PostgresHost } from "../../src/ports/postgres-host.ts";
import type { Storage, Storages } from "../../src/ports/storage.ts";
import { createDriver, type Driver } from "../../src/reconcile/driver.ts";
import type { Task, Platform } from "../../src/reconcile/platform.ts";
import { backupsTask } from "../../src/reconcile/backups/backups-task.ts";
import { databasesTask } from "../../src/reconcile/databases/databases-task.ts";
import { testProject } from "./fixtures.ts";
import { testApi, testOrganization, type Called, type TestApi, type TestOrganization } from "./test-platform.ts";
import { eventually } from "./eventually.ts";
import { platformBeside } from "./platform-double.ts";

/** The API, the reconcilers of databases and backups, a real PostgreSQL and a folder for files. */
export interface BackupPlatform extends AsyncDisposable {
  /** The age identity to which downloads are encrypted. */
  readonly recoveryKey: string;
  readonly api: TestApi;
  readonly org: TestOrganization;
  readonly platform: Platform;
  readonly host: PostgresHost;
  readonly backupsDir: string;
  /** For tests that create another host on the same instances. */
  readonly hostOptions: LocalPostgresHostOptions;
  /** Starts the backup reconciler, which runs from the beginning unless `paused`. */
  resume(): Promise<void>;
  /** Starts one more reconciler task. */
  startTask(task: (wake: () => void) => Task): Promise<void>;
  /** Creates a project with a ready database. */
  project(): Promise<TestProject>;
  /** Calls the API as the owner. */
  call(method: string, path: string, body?: unknown): Promise<Called>;
  /** Requests a backup and waits until it is completed. */
  backup(slug: string): Promise<BackupDocument>;
  /** Waits until the backup is no longer running, and returns it. */
  ended(id: string): Promise<BackupDocument>;
  close(): Promise<void>;
}

export interface TestProject {
  readonly id: string;
  readonly slug: string;
  row(): Promise<DatabaseRow>;
  /** Logs in with the application's role; `database` selects another database of the instance. */
  login(database?: string): Promise<pg.Client>;
  query(sql: string, database?: string): Promise<Record<string, unknown>[]>;
}

export interface BackupDocument {
  readonly id: string;
  readonly status: string;
  readonly sha256: string;
  readonly size_bytes: number;
  readonly tables: readonly { table: string; rows: number }[];
  readonly operation: { phase: string; bytes_done: number; tables_done: number } | null;
  readonly failure: { code: string; summary: string } | null;
  readonly verification: { status: string; reason: string | null } | null;
}

export interface BackupPlatformOptions {
  /** Wraps the disk storage that the platform uses. */
  readonly storage?: (disk: Storage) => Storage;
  readonly paused?: boolean;
  /** Where the instances are; usually in memory. */
  readonly folder?: string;
}

export async function startBackupPlatform({
  storage = (disk) => disk,
  paused = false,
  folder,
}: BackupPlatformOptions = {}): Promise<BackupPlatform> {
  const place = makeTestPlace("", folder);
  const host = createLocalPostgresHost(place.options);
  const backupsDir = await mkdtemp(join(tmpdir(), "berth-backups-"));
  const recoveryKey = await generateX25519Identity();
  const recipient = await identityToRecipient(recoveryKey);
  const storages: Storages = {
    ...{ standard: "disk", named: { disk: storage(createDiskStorage({ dir: backupsDir })) } },
    encrypt: async (content) => encryptTo([recipient], content),
  };
  const tenantDatabase = createPostgresTenantDatabase({
    connections: 3,
    endSession: ({ spec }, processId) => host.endSession(spec, processId),
    limitSession: ({ spec }, processId) => host.limitSession(spec, processId),
  });
  const api = await testApi({ ports: { postgresHost: host, storages, tenantDatabase } });
  const org = await testOrganization(api.database.db, "home", { maxProjects: 100 });
  const platform = platformOf(api, host, storages);
  const drivers: Driver[] = [];
  const startTask = async (task: (wake: () => void) => Task) => {
    const only: Task = task(() => driver.wake(only.name));
    const driver = createDriver({ tasks: [only], wakeups: platform.wakeups, log: silentLog });
    drivers.push(driver);
    await driver.start();
  };
  const resume = () => startTask((wake) => backupsTask(platform, wake));
  await startTask(() => databasesTask(platform));
  if (!paused) await resume();
  const call = (method: string, path: string, body?: unknown) =>
    api.call(method, path, { token: org.owner, ...(body === undefined ? {} : { body }) });
  const ended = async (id: string) => {
    const body = await eventually(async () => {
      const { status, body, text } = await call("GET", `/v1/backups/${id}`);
      if (status !== 200) throw new Error(text);
      return body["status"] !== "running" && body["operation"] === null && body;
    }, `${id} has ended`);
    return body as unknown as BackupDocument;
  };
  return {
    [Symbol.asyncDispose](this: BackupPlatform) {
      return this.close();
    },
    api,
    recoveryKey,
    org,
    platform,
    host,
    backupsDir,
    hostOptions: place.options,
    resume,
    startTask,
    call,
    ended,
    project: () => makeProject(api, org),
    async backup(slug) {
      const asked = await call("POST", `/v1/projects/${slug}/backups`);
      if (asked.status !== 201) throw new Error(asked.text);
      const done = await ended(asked.body["id"] as string);
      if (done.status !== "completed") throw new Error(JSON.stringify(done));
      return done;
    },
    async close() {
      for (const driver of drivers) await driver.stop();
      for (const id of await host.list()) await host.destroy(id);
      await api.close();
      place.remove();
      await rm(backupsDir, { recursive: true });
    },
  };
}

function platformOf(api: TestApi, host: PostgresHost, storages: Storages): Platform {
  const owner = formatIdentity(ownIdentity());
  return platformBeside(api, { owner, ports: { postgresHost: host, storages } });
}

async function makeProject(api: TestApi, org: TestOrganization): Promise<TestProject> {
  const { db, vault, wakeups } = api.platform;
  const { id, slug } = await testProject(api.platform, org);
  await db.transaction().execute(async (tx) => {
    await requestDatabase(tx, vault, { org_id: org.id, project_id: id });
    await wakeups.send(tx, "databases", id);
  });
  const row = async () => (await databaseOf(db, org.id, id)) as DatabaseRow;
  while ((await row()).status !== "ready") await new Promise((resolve) => setTimeout(resolve, 50));
  const login = async (database?: string) => {
    const now = await row();
    const { password, role_name } = specOf(vault, now);
    const client = new pg.Client({
      host: now.host ?? "",
      port: now.port ?? 0,
      user: role_name,
      password,
      database: database ?? now.database_name,
    });
    client.on("error", () => {});
    await client.connect();
    return client;
  };
  const query = async (sql: string, database?: string) => {
    const client = await login(database);
    try {
      return (await client.query(sql)).rows ?? [];
    } finally {
      await client.end();
    }
  };
  return { id, slug, row, login, query };
}
