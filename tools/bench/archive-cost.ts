import { readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mapWithConcurrency } from "../../src/kit/map-with-concurrency.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { listProcesses } from "../../test/e2e/processes.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../../test/support/backups.ts";
import { eventually } from "../../test/support/eventually.ts";
import { ledgerTable, startLedger } from "../../test/support/ledger.ts";
import { superuserConnection } from "../../src/adapters/postgres-host-local/superuser-connection.ts";
import { withConnection } from "../../src/postgres/connection.ts";
import { pssOf } from "./memory.ts";
import { secondsOfProcesses } from "./processor-time.ts";
import { benchSize, countRow, goalRow, type BenchRow } from "./row.ts";
import { startS3Store } from "./s3-store.ts";

/**
 * Measures what is lost with the disk at the worst instant, for an archive in S3 and one on another disk that is told so each second, and
 * what the archives of idle databases cost.
 */
export async function measureArchiveCost(): Promise<readonly BenchRow[]> {
  await using store = await startS3Store();
  return [
    await measureLoss("S3, a look each 5 s", 5, store.storage),
    await measureLoss("a disk, a look each second", 1),
    ...(await measureIdle()),
  ];
}

const startArchives = (running: BackupPlatform, seconds: number) => {
  const { settings } = running.platform;
  const backups = { ...settings.backups, archiveEveryMs: seconds * 1000 };
  return running.startTask(() => archivesTask({ ...running.platform, settings: { ...settings, backups } }));
};

async function storedUntil(running: BackupPlatform, { slug }: TestProject): Promise<number> {
  const { windows } = (await running.call("GET", `/v1/projects/${slug}/database/archive`)).body;
  return Date.parse((windows as { to: string }[]).at(-1)?.to ?? "");
}

/** Looks ten times a second at the oldest acknowledged commit that is not stored: with the disk, all since then would be lost. */
async function measureLoss(where: string, seconds: number, storage?: Storage): Promise<BenchRow> {
  await using running = await startBackupPlatform({ folder: tmpdir(), ...(storage ? { storage: () => storage } : {}) });
  await startArchives(running, seconds);
  const project = await running.project();
  await project.query(ledgerTable);
  await eventually(async () => (await storedUntil(running, project)) > 0, "the first copy is made");
  const ledger = startLedger(() => project.login(), { writers: 4, pauseMs: 20 });
  await sleep(3 * seconds * 1000);
  let mostMs = 0;
  for (const endMs = Date.now() + benchSize("seconds", 20) * 1000; Date.now() < endMs; await sleep(100)) {
    const atMs = Date.now();
    const until = await storedUntil(running, project);
    const unstored = [...ledger.commits.values()].flatMap(({ ackedMs }) =>
      ackedMs !== null && ackedMs > until && ackedMs <= atMs ? [ackedMs] : [],
    );
    mostMs = Math.max(mostMs, atMs - Math.min(atMs, ...unstored));
  }
  const commits = await ledger.stop();
  const name = `most that is lost with the disk, archive in ${where}, ${commits} commits`;
  return goalRow(name, mostMs, { goal: seconds * 1000, unit: "ms" });
}

/** Makes the checkpoint that PostgreSQL makes within five minutes after the last write, and waits until no database writes log any more. */
async function settle(running: BackupPlatform, projects: readonly TestProject[]): Promise<void> {
  const seconds = benchSize("settle", 20);
  const rows = await Promise.all(projects.map((project) => project.row()));
  for (const { id, host, port } of rows) {
    const address = { dir: join(running.hostOptions.dir, id), socketDir: host ?? "", port };
    await withConnection(superuserConnection(address), (client) => client.query("checkpoint"));
  }
  const lastWrites = () =>
    rows.flatMap(({ id }) => {
      const folder = join(running.hostOptions.dir, id, "data", "pg_wal");
      return readdirSync(folder).map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0);
    });
  const isOver = () => Date.now() - lastWrites().reduce((a, b) => Math.max(a, b), 0) > seconds * 1000;
  await eventually(isOver, `no database has written any log for ${seconds} s`, 3_600_000);
}

async function measureIdle(): Promise<BenchRow[]> {
  const [databases, seconds] = [benchSize("idle", 10), benchSize("seconds", 20)];
  let objects = 0;
  await using running = await startBackupPlatform({
    folder: tmpdir(),
    storage: (disk) => ({ ...disk, put: (...given) => ((objects += 1), disk.put(...given)) }),
  });
  const projects: TestProject[] = [];
  const create = async () => void projects.push(await running.project());
  await mapWithConcurrency(Array.from({ length: databases }), 4, create);
  await settle(running, projects);
  const off = await measureUse(running, projects, seconds);
  await startArchives(running, 5);
  for (const project of projects)
    await eventually(async () => (await storedUntil(running, project)) > 0, `${project.slug} has its first copy`);
  await settle(running, projects);
  objects = 0;
  const on = await measureUse(running, projects, seconds);
  return [
    goalRow(`memory of the archives of ${databases} idle databases`, on.mb - off.mb, { goal: 100, unit: "MB" }),
    goalRow(`their processor time in ${seconds} s`, on.cpuMs - off.cpuMs, {
      ...{ goal: (seconds * databases) / 10, unit: "ms" },
    }),
    countRow("objects stored for them", `${seconds} s`, objects),
  ];
}

/** Returns the memory (PSS) of this process and of the databases', and their processor time while nobody uses them. */
async function measureUse(running: BackupPlatform, projects: readonly TestProject[], seconds: number) {
  const marks = await Promise.all(
    projects.map(async (project) =>
      readFileSync(join(running.hostOptions.dir, (await project.row()).id, "process-mark"), "utf8"),
    ),
  );
  const own = () => {
    const isOwn = (line: string) => marks.some((mark) => line.includes(mark));
    return [process.pid, ...listProcesses().flatMap(({ pid, commandLine }) => (isOwn(commandLine) ? [pid] : []))];
  };
  const before = secondsOfProcesses(own());
  await sleep(seconds * 1000);
  const pids = own();
  const cpuMs = (secondsOfProcesses(pids) - before) * 1000;
  return { cpuMs, mb: pids.reduce((sum, pid) => sum + pssOf(pid), 0) };
}
