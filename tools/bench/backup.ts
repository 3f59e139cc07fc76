import { existsSync } from "node:fs";
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { login, missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { createDiskStorage } from "../../src/adapters/storage-disk/disk-storage.ts";
import { runOk } from "../../src/kit/exec.ts";
import { loginOf } from "../../src/ports/postgres-host.suite.ts";
import type { DatabaseEndpoint, DatabaseSpec, PostgresHost } from "../../src/ports/postgres-host.ts";
import { checkArchive, packArchive, unpackArchive } from "../../src/features/backups/backups.ts";
import { startServer } from "./own-server.ts";
import { benchSize, inTurns, medians, timed, timeRow, type BenchRow, type BenchStep } from "./row.ts";

const zstd = "/usr/bin/zstd";
const rounds = 5;
const rowCount = benchSize("rows", 2_000_000);
const goal = 1.1;

export function backupBenchLacks(): string | undefined {
  if (missingPart !== false) return missingPart;
  return existsSync(zstd) ? undefined : "the zstd program, which compresses the bare dumps";
}

/**
 * Compares the platform's backup (dump, counts of all tables in the same snapshot, checksum, durable file) with pg_dump and zstd alone, in
 * the same format into the same folder; and a restore with pg_restore.
 */
export async function measureBackups(): Promise<readonly BenchRow[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "berth-bench-"));
  await using server = await startServer();
  const { host, spec } = server;
  await fill(server.endpoint, spec);
  const bare = { ...server, dir: folder.path };
  return [await measureDump(host, bare), await measureRestore(host, bare)];
}

interface Bare {
  readonly bin: string;
  readonly endpoint: DatabaseEndpoint;
  readonly spec: DatabaseSpec;
  readonly dir: string;
}

const { signal } = new AbortController();

async function fill(endpoint: DatabaseEndpoint, spec: DatabaseSpec): Promise<void> {
  const session = await login(endpoint, loginOf(spec));
  await session.query(`set statement_timeout = 0;
    create table events (id bigint primary key, at timestamptz, kind text, body text);
    insert into events select i, now() - i * interval '1 second', (array['view','click','order'])[1 + i % 3], md5(i::text) || md5((i * 7)::text)
      from generate_series(1, ${rowCount}) i;
    create table people (id int primary key, name text, email text);
    insert into people select i, 'Person ' || i, 'person' || i || '@example.test' from generate_series(1, ${rowCount / 10}) i;`);
  await session.end();
}

async function measureDump(host: PostgresHost, bare: Bare): Promise<BenchRow> {
  const storage = createDiskStorage({ dir: bare.dir });
  const consume = async (archive: Readable) =>
    void (await packArchive(archive, { storage, key: "ours", signal, onBytes: () => {} }));
  const measured = await inTurns(rounds, {
    theirs: () => timed(() => dumpBare(bare, join(bare.dir, "bare.zst"))),
    ours: () => timed(() => host.dump(bare.spec, { signal, isCompressed: true, consume })),
  });
  const times = { ...medians(measured), goal };
  const name = `backup of ${rowCount / 1_000_000} million rows, with counts and checksum`;
  return { ...timeRow(name, "pg_dump -Fc -Z0 | zstd -3", times), steps: await measureParts(host, bare) };
}

/** Measures each part alone; in a backup, counting runs beside the dump. */
async function measureParts(host: PostgresHost, bare: Bare): Promise<BenchStep[]> {
  const drain = async (archive: Readable) => void (await finished(archive.resume()));
  const thrownAway = (isCompressed: boolean) => () => host.dump(bare.spec, { signal, isCompressed, consume: drain });
  const parts: readonly [string, () => Promise<unknown>, (() => Promise<unknown>) | null][] = [
    ["rows counted", () => host.countRows(bare.spec, bare.spec.database_name, { signal }), null],
    ["dumped and thrown away", thrownAway(false), () => dumpBare(bare, "/dev/null", "/bin/cat")],
    ["dumped, compressed and thrown away", thrownAway(true), () => dumpBare(bare, "/dev/null")],
  ];
  return Array.fromAsync(parts, async ([name, ours, theirs]) => ({
    ...{ name, ours: await timed(ours), theirs: theirs === null ? null : await timed(theirs) },
  }));
}

async function measureRestore(host: PostgresHost, bare: Bare): Promise<BenchRow> {
  const file = { storage: createDiskStorage({ dir: bare.dir }), key: "ours", signal, onBytes: () => {} };
  const consume = async (archive: Readable) => void (made = await packArchive(archive, file));
  let made = { sha256: "" };
  await host.dump(bare.spec, { signal, consume, isCompressed: true });
  const ours = { ...file, sha256: made.sha256 };
  const measured = await inTurns(rounds - 2, {
    theirs: () => inFresh(host, bare.spec, (name) => restoreBare(bare, join(bare.dir, "bare.zst"), name)),
    ours: () =>
      inFresh(host, bare.spec, async (name) => {
        await checkArchive(ours);
        await host.restore(bare.spec, name, { archive: await unpackArchive(ours), signal });
      }),
  });
  return timeRow("restore, the file checked first", "zstd -d | pg_restore", medians(measured));
}

async function inFresh(
  host: PostgresHost,
  spec: DatabaseSpec,
  work: (name: string) => Promise<unknown>,
): Promise<number> {
  await host.createDatabase(spec, "fresh");
  try {
    return await timed(() => work("fresh"));
  } finally {
    await host.dropDatabase(spec, "fresh");
  }
}

// A shell's pipe is the reference; its text is fixed, and variable parts are passed as arguments.
async function dumpBare(bare: Bare, path: string, program = zstd): Promise<void> {
  const how = program === zstd ? ["-3", "-q", "-c"] : [];
  const script = 'dump=$1 path=$2; shift 2; "$dump" -Fc -Z0 | "$@" > "$path"';
  await runOk(
    { file: "/bin/sh", args: ["-c", script, "sh", join(bare.bin, "pg_dump"), path, program, ...how] },
    { env: libpq(bare) },
  );
}

async function restoreBare(bare: Bare, path: string, name: string): Promise<void> {
  const script = '"$1" -d -q -c "$2" | "$3" --dbname="$4" --single-transaction --no-owner --no-acl';
  const args = ["-c", script, "sh", zstd, path, join(bare.bin, "pg_restore"), name];
  await runOk({ file: "/bin/sh", args }, { env: libpq(bare) });
}

function libpq({ endpoint, spec }: Bare): Record<string, string> {
  return {
    PATH: "/usr/bin:/bin",
    PGHOST: endpoint.host,
    PGPORT: `${endpoint.port}`,
    PGUSER: spec.role_name,
    PGPASSWORD: spec.password,
    PGDATABASE: spec.database_name,
  };
}
