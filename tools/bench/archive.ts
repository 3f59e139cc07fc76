import { existsSync } from "node:fs";
import { mkdir, mkdtempDisposable, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { makeTestPlace, missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { createDiskStorage } from "../../src/adapters/storage-disk/disk-storage.ts";
import { packArchive } from "../../src/features/backups/backups.ts";
import { specOf } from "../../src/features/database/database.ts";
import { runOk } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { branchesTask } from "../../src/reconcile/branches/branches-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../../test/support/backups.ts";
import { eventually, guardMs } from "../../test/support/eventually.ts";
import { freePort } from "../../test/support/free-port.ts";
import { benchSize, inTurns, median, medians, rateRow, timed, timeRow, type BenchRow } from "./row.ts";
import { startS3Store } from "./s3-store.ts";

const pgbackrest = "/usr/bin/pgbackrest";
const pgbench = "/usr/bin/pgbench";
const rounds = 3;
const writeSeconds = 8;

export function archiveBenchLacks(): string | undefined {
  if (missingPart !== false) return missingPart;
  if (process.getuid?.() !== 0) return "root, which runs pgBackRest's server as the user postgres";
  return [pgbackrest, pgbench].every(existsSync) ? undefined : "pgbackrest and pgbench";
}

const fillText = (rows: number) => `create table events (id bigint primary key, at timestamptz, body text);
  insert into events select i, now(), md5(i::text) || md5((i * 7)::text) from generate_series(1, ${rows}) i`;

/**
 * Compares a database whose log is archived with one without an archive, and a copy and a restore to a moment with those of pgBackRest,
 * whose repository is on the same disk and compresses alike. The restores are of the same moment of the same rows: a copy, and a tenth more
 * rows in the log.
 */
export function measureArchives(): Promise<readonly BenchRow[]> {
  return withBoth({}, async (running, bare, dir) => {
    const [archived, plain] = [await running.project(), await running.project()];
    await setArchive(running, plain, false);
    const writes = await measureWrites(running, { archived, plain });
    const kept = await fill(running, bare);
    const copies = await measureCopies(running, { kept, bare, dir });
    return [writes, copies, ...(await measureRestores(running, { kept, bare }))];
  });
}

/** Compares the same restores where both keep everything in one S3 server: Berth encrypted, pgBackRest with a process for each core. */
export async function measureArchivesInS3(): Promise<readonly BenchRow[]> {
  await using store = await startS3Store();
  const repository = `${store.repository}\nprocess-max=${availableParallelism()}`;
  return await withBoth({ storage: store.storage, repository }, async (running, bare) => {
    const kept = await fill(running, bare);
    await bare.backrest("--type=full", "--start-fast", "backup");
    return measureRestores(running, { kept, bare }, "from S3: ");
  });
}

interface Stores {
  readonly storage?: Storage;
  /** What pgBackRest's configuration says about its repository. */
  readonly repository?: string;
}

async function withBoth<T>(
  { storage, repository }: Stores,
  measure: (running: BackupPlatform, bare: Bare, dir: string) => Promise<T>,
): Promise<T> {
  // On the disk, as pgBackRest's files are.
  await using folder = await mkdtempDisposable(join(tmpdir(), "berth-bench-"));
  const dir = folder.path;
  await using running = await startBackupPlatform({ folder: tmpdir(), ...(storage && { storage: () => storage }) });
  await using bare = await startBare(dir, repository ?? `repo1-path=${dir}/repository`);
  const { platform } = running;
  const settings = {
    ...platform.settings,
    backups: { ...platform.settings.backups, archiveEveryMs: 5000 },
    branches: { ...platform.settings.branches, copyBytes: Infinity },
  };
  await running.startTask(() => archivesTask({ ...platform, settings }));
  await running.startTask((wake) => branchesTask({ ...platform, settings }, wake));
  return await measure(running, bare, dir);
}

const rowsOfTable = () => benchSize("rows", 2_000_000);

/** Makes a table of the same rows on both sides; Berth's is archived from then on. */
async function fill(running: BackupPlatform, bare: Bare): Promise<TestProject> {
  const kept = await running.project();
  await setArchive(running, kept, false);
  // Otherwise autovacuum decides how much log follows the copies.
  for (const text of [fillText(rowsOfTable()), "vacuum freeze events"]) {
    await kept.query(text);
    await bare.sql(text);
  }
  await setArchive(running, kept, true);
  return kept;
}

async function call(running: BackupPlatform, method: string, path: string, body?: unknown) {
  const { status, body: answer, text } = await running.call(method, path, body);
  if (status >= 300) throw new Error(text);
  return answer;
}

/** Turns the archive of a database on, and waits for its first copy, or off. */
async function setArchive(running: BackupPlatform, { slug }: TestProject, enabled: boolean): Promise<void> {
  const path = `/v1/projects/${slug}/database/archive`;
  await call(running, "PATCH", path, { enabled });
  const status = enabled ? "healthy" : "off";
  await eventually(async () => (await call(running, "GET", path))["status"] === status, `the archive is ${status}`);
}

async function measureWrites(
  running: BackupPlatform,
  { archived, plain }: { readonly archived: TestProject; readonly plain: TestProject },
): Promise<BenchRow> {
  const writes = (project: TestProject) => (round: number) => writeTo(running, project, round === 0);
  const rates = medians(await inTurns(rounds, { ours: writes(archived), theirs: writes(plain) }, 1));
  return rateRow("transactions of pgbench with an archive", "the same database without one", { ...rates, goal: 0.97 });
}

async function writeTo(running: BackupPlatform, project: TestProject, isFirst: boolean): Promise<number> {
  const row = await project.row();
  const { password, role_name } = specOf(running.platform.vault, row);
  const env = { PGPASSWORD: password, PGHOST: row.host ?? "", PGPORT: `${row.port}`, PATH: "/usr/bin:/bin" };
  const to = ["-U", role_name, row.database_name];
  if (isFirst) await runOk({ file: pgbench, args: ["-i", "-q", "-s", "5", ...to] }, { env });
  const args = ["-N", "-c", "4", "-T", `${writeSeconds}`, ...to];
  const { stdout } = await runOk({ file: pgbench, args }, { env, timeoutMs: 120_000 });
  return Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1]);
}

type Bare = Awaited<ReturnType<typeof startBare>>;

async function measureCopies(
  running: BackupPlatform,
  { kept, bare, dir }: { readonly kept: TestProject; readonly bare: Bare; readonly dir: string },
): Promise<BenchRow> {
  const row = await kept.row();
  const history = running.host.history(row.id);
  if (history === null) throw new Error("the database has no history");
  const { signal } = new AbortController();
  const storage = createDiskStorage({ dir: join(dir, "copies") });
  const consume = async (archive: Parameters<typeof packArchive>[0]) =>
    void (await packArchive(archive, { storage, key: "copy", signal, onBytes: () => {} }));
  const times = await inTurns(rounds, {
    theirs: () => timed(() => bare.backrest("--type=full", "--start-fast", "backup")),
    ours: () => timed(() => history.copy(specOf(running.platform.vault, row), { signal, consume })),
  });
  return timeRow("a copy of the running database", "pgbackrest backup --type=full", medians(times));
}

async function measureRestores(
  running: BackupPlatform,
  { kept, bare }: { readonly kept: TestProject; readonly bare: Bare },
  from = "",
): Promise<BenchRow[]> {
  const rows = rowsOfTable();
  const more = `insert into events select i, now(), md5(i::text) from generate_series(${rows + 1}, ${rows * 1.1}) i`;
  await kept.query(more);
  await bare.sql(more);
  const of = (rest: string) => `/v1/projects/${kept.slug}${rest}`;
  const [{ at } = {}] = await kept.query("select clock_timestamp() as at");
  const moment = (at as Date).toISOString();
  await eventually(async () => {
    const { windows } = (await call(running, "GET", of("/database/archive"))) as { windows?: { to: string }[] };
    return (windows?.at(-1)?.to ?? "") > moment;
  }, "the log is stored");
  const theirMoment = await bare.sql("select now()");
  await bare.sql("insert into events values (0, now(), '')");
  await bare.sql("select pg_switch_wal()");
  const branched = await inTurns(rounds, {
    theirs: () => bare.restore(theirMoment),
    ours: (round) => timed(() => branchAt(running, of("/database/branches"), { name: `b${round}`, at: moment })),
  });
  const restore = () => timed(() => call(running, "POST", of("/restore"), { at: moment }));
  const beside = await Array.fromAsync({ length: rounds }, restore);
  const [against, times] = ["pgbackrest restore, answering", medians(branched)];
  return [
    timeRow(`${from}a branch at a moment, answering`, against, { ...times, goal: 0.5 }),
    timeRow(`${from}restored to a moment beside the live one, rows counted`, against, {
      ...times,
      ours: median(beside),
    }),
  ];
}

async function branchAt(running: BackupPlatform, path: string, body: { readonly name: string; readonly at: string }) {
  await call(running, "POST", path, body);
  const isReady = async () => (await call(running, "GET", `${path}/${body.name}`))["status"] === "ready" || undefined;
  await until(isReady, { timeoutMs: guardMs, atMostMs: 20 });
}

/** Starts a PostgreSQL server whose log pgBackRest archives, as its documentation sets it up. */
async function startBare(dir: string, repository: string) {
  const { options, remove } = makeTestPlace();
  remove();
  const port = await freePort();
  const [data, restored, config] = [join(dir, "data"), join(dir, "restored"), join(dir, "pgbackrest.conf")];
  const own = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"];
  const as = (file: string, ...args: string[]) =>
    runOk({ file: "/usr/bin/setpriv", args: [...own, file, ...args] }, { cwd: dir, timeoutMs: 600_000 });
  const program = (name: string) => join(options.binDir, name);
  const backrest = (...args: string[]) => as(pgbackrest, `--config=${config}`, "--stanza=bench", ...args);
  for (const name of ["repository", "lock", "log", "socket"]) await mkdir(join(dir, name));
  await writeFile(
    config,
    `[global]\n${repository}\nlock-path=${dir}/lock\nlog-path=${dir}/log\ncompress-type=zst\ncompress-level=1
[bench]\npg1-path=${data}\npg1-port=${port}\npg1-socket-path=${dir}/socket\npg1-database=template1\npg1-user=postgres\n`,
  );
  await runOk({ file: "/bin/chown", args: ["-R", "postgres:postgres", dir] });
  await as(program("initdb"), "-D", data, "-A", "trust", "--data-checksums");
  const control = (folder: string, ...args: string[]) => as(program("pg_ctl"), "-D", folder, "-w", ...args);
  const archive = `-c archive_command='${pgbackrest} --config=${config} --stanza=bench archive-push %p'`;
  const serve = (folder: string, at: number) => {
    const options = `-p ${at} -k ${dir}/socket -c listen_addresses= -c archive_mode=${folder === data ? "on" : "off"} ${archive}`;
    return control(folder, ...["-t", "600", "-l", join(dir, "postgres.log"), "-o", options, "start"]);
  };
  const stop = (folder: string) => control(folder, "-m", "fast", "stop");
  await serve(data, port);
  await backrest("stanza-create");
  const ask = async (at: number, text: string) => {
    const to = ["-XAtq", "-h", `${dir}/socket`, "-p", `${at}`, "-d", "postgres"];
    return (await as("/usr/bin/psql", ...to, "-c", text)).stdout.trim();
  };
  const sql = (text: string) => ask(port, text);
  return {
    backrest,
    sql,
    [Symbol.asyncDispose]: async () => void (await stop(data)),
    /** Restores to a moment into a folder of its own. Returns after how many milliseconds that answers, and takes writes. */
    async restore(moment: string) {
      await as("/bin/mkdir", "-m", "700", restored);
      const to = [`--pg1-path=${restored}`, "--type=time", `--target=${moment}`, "--target-action=promote"];
      const ms = await timed(async () => {
        await backrest(...to, "restore");
        await serve(restored, port + 1);
        const isDone = async () => (await ask(port + 1, "select not pg_is_in_recovery()")) === "t" || undefined;
        await until(isDone, { timeoutMs: guardMs, atMostMs: 20 });
      });
      await stop(restored);
      await rm(restored, { recursive: true });
      return ms;
    },
  };
}
