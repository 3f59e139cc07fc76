// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import { setTimeout as sleep } from "node:timers/promises";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { runOk } from "../../src/kit/exec.ts";
import {
  archiveFolder,
  beginCopy,
  openChains,
  requestDrill,
  troubledDrills,
  unfinishedCopies,
} from "../../src/features/backups/backups.ts";
import { lastDue } from "../../src/features/backups/rules.ts";
import { requestDueDrills } from "../../src/reconcile/backups/backup-upkeep.ts";
import { applyArchiveRetention, deleteExpiredChains } from "../../src/reconcile/archives/archive-upkeep.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { segmentName } from "../../src/ports/postgres-host.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { eventually } from "../support/eventually.ts";
import { testBuild, testDeployment } from "../support/fixtures.ts";

interface Drill {
  readonly status: string;
  readonly problem: string | null;
  readonly sha256: string;
  readonly evidence: {
    readonly tables: readonly unknown[];
    readonly copy: { readonly key: string; readonly sha256: string };
    readonly log: { readonly first: string; readonly segments: number; readonly sha256: string };
  };
}

/** JSON with sorted keys. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}

interface Archive {
  readonly status: string;
  readonly reason: string | null;
  readonly windows: readonly { readonly from: string; readonly to: string }[];
  readonly gaps: readonly { readonly reason: string }[];
}

const never = new AbortController().signal;

describe("any moment of a database", { skip: missingPart }, () => {
  let running: BackupPlatform;
  let project: TestProject;
  let isAway = false;
  let refusesCopies = false;

  before(async () => {
    running = await startBackupPlatform({
      storage: (disk) => ({
        ...disk,
        put: (key, ...rest) =>
          isAway || (refusesCopies && key.endsWith(".tar.zst"))
            ? Promise.reject(new Error("the storage is away"))
            : disk.put(key, ...rest),
      }),
    });
    await running.startTask(() => archivesTask(running.platform));
    project = await running.project();
    await project.query("create table notes (id int generated always as identity primary key, body text)");
    await store();
    await eventually(async () => (await archive()).status === "healthy", "the first copy is made");
  });
  after(() => running?.close());

  const of = (rest: string) => `/v1/projects/${project.slug}${rest}`;
  const archive = async () => (await running.call("GET", of("/database/archive"))).body as unknown as Archive;
  /** Asks the task to store now what it stores every few seconds. */
  const store = () => running.platform.wakeups.send(running.platform.db, "archives");
  const now = async () => (await project.query("select clock_timestamp() as at"))[0]?.["at"] as Date;
  const restore = (body: unknown) => running.call("POST", of("/restore"), body);
  const rowsIn = async (database: string) =>
    (await project.query("select count(*)::int as n from notes", database))[0]?.["n"];
  const drop = (database: string) => running.call("DELETE", of(`/database/restored/${database}`));
  const isStoredAt = (at: Date) =>
    eventually(async () => {
      await store();
      return new Date((await archive()).windows.at(-1)?.to ?? 0) >= at;
    }, "the log is stored");

  it("is restored beside the live data with exactly what was committed, also one that was a moment ago", async () => {
    const moments: Date[] = [];
    for (let row = 1; row <= 3; row += 1) {
      await project.query("insert into notes (body) select md5(i::text) from generate_series(1, 100) i");
      moments.push(await now());
    }
    await project.query("delete from notes");
    for (const [index, at] of moments.entries()) {
      const { status, body, text } = await restore({ at: new Date(at.getTime() + 1).toISOString() });
      assert.equal(status, 201, text);
      const name = body["database"] as string;
      assert.match(name, /^restored_/);
      assert.equal(await rowsIn(name), 100 * (index + 1));
      await drop(name);
    }
    assert.equal((await project.query("select count(*)::int as n from notes"))[0]?.["n"], 0);
    assert.deepEqual(
      (await readdir(join(running.hostOptions.dir, (await project.row()).id))).filter((name) => name === "recovered"),
      [],
    );
  });

  it("is restored of a database that has written nothing since, up to now", async () => {
    await eventually(async () => {
      await store();
      const stored = await running.platform.db
        .selectFrom("archive_chain")
        .select("stored_until")
        .executeTakeFirstOrThrow();
      await sleep(1000);
      return Date.parse(stored.stored_until ?? "") < Date.now() - 500;
    }, "the archive was last told a while ago");
    const at = new Date(Date.now() - 100);
    const { status, body, text } = await restore({ at: at.toISOString() });
    assert.equal(status, 201, text);
    await drop(body["database"] as string);
  });

  it("is refused with both bounds when it is outside of the window", async () => {
    const { windows } = await archive();
    for (const at of ["365d", new Date(Date.now() + 3_600_000).toISOString()]) {
      const { status, body } = await restore({ at });
      assert.deepEqual([status, body["code"]], [409, "target_outside_window"]);
      assert.ok(String(body["error"]).includes(windows[0]?.from ?? "none"), String(body["error"]));
    }
    const both = await restore({ at: "1m", backup_id: "bak_1" });
    assert.equal(both.status, 400);
    assert.match(both.text, /at: give only one of/);
    assert.equal((await restore({ before_deployment: 12 })).status, 404);
  });

  it("shows the database that was live then, after another one was promoted", async () => {
    await project.query("insert into notes (body) values ('before the promotion')");
    const at = new Date((await now()).getTime() + 1);
    const first = (await project.row()).database_name;
    const { body } = await restore({ at: at.toISOString() });
    const name = body["database"] as string;
    assert.equal((await running.call("POST", of("/database/promote"), { database: name })).status, 200);
    await project.query("insert into notes (body) values ('after it')", name);
    const restored = await restore({ at: at.toISOString() });
    assert.equal(await rowsIn(restored.body["database"] as string), 1);
    assert.equal((await running.call("POST", of("/database/promote"), { database: first })).status, 200);
    for (const each of [name, restored.body["database"] as string]) await drop(each);
  });

  it("stays restorable while the storage is away and after it is back, and writes go on", async () => {
    isAway = true;
    await project.query("insert into notes (body) values ('while it was away')");
    await store();
    await eventually(async () => (await archive()).status === "behind", "the archive is behind");
    assert.match((await archive()).reason ?? "", /the storage is away/);
    const at = new Date((await now()).getTime() + 1);
    await project.query("insert into notes (body) values ('later')");
    const refused = await restore({ at: at.toISOString() });
    assert.deepEqual([refused.status, refused.body["code"]], [409, "target_outside_window"]);
    isAway = false;
    await isStoredAt(at);
    await eventually(async () => (await archive()).status === "healthy", "the archive has caught up");
    const { body } = await restore({ at: at.toISOString() });
    const rows = await project.query("select body from notes", body["database"] as string);
    assert.ok(rows.some((row) => row["body"] === "while it was away") && !rows.some((row) => row["body"] === "later"));
    await drop(body["database"] as string);
  });

  /** Waits until a later copy shows moments again, and returns the reason of the gap before it. */
  async function copiedAgain(from: Date): Promise<string> {
    const seen = await eventually(async () => {
      const { windows, gaps } = await archive();
      return new Date(windows.at(-1)?.from ?? 0) > from && { gap: gaps.at(-1), from: windows.at(-1)?.from };
    }, "there is another copy");
    const { status, body, text } = await restore({ at: seen.from });
    assert.equal(status, 201, text);
    await drop(body["database"] as string);
    return seen.gap?.reason ?? "";
  }

  const damages = {
    flipped: (whole: Buffer) => whole.with(-20, (whole.at(-20) ?? 0) ^ 1),
    cut: (whole: Buffer) => whole.subarray(0, -30),
    missing: () => null,
  };
  for (const [kind, damage] of Object.entries(damages))
    it(`is refused by name when a part of the stored log is ${kind}, and a copy that needs none of it is made at once`, async () => {
      const known = await now();
      await isStoredAt(new Date(known.getTime() + 1000));
      // Marks are at most 10 s apart: the next one is of a look after this.
      await running.platform.db.deleteFrom("archive_mark").execute();
      const before = (await project.query("select from notes")).length;
      await project.query("insert into notes (body) select md5(i::text) from generate_series(1, 20000) i");
      await isStoredAt(await now());
      const at = await now();
      await project.query("insert into notes (body) values ('one more')");
      // A restore reads up to the first commit behind the moment. The server may begin another segment after that.
      const [written] = await project.query("select pg_walfile_name(pg_current_wal_insert_lsn()) as name");
      // A segment that more log has followed is stored once more, and then never again.
      await project.query("insert into notes (body) select md5(i::text) from generate_series(1, 20000) i");
      await isStoredAt(await now());
      const chain = (await openChains(running.platform.db)).find(({ project_id }) => project_id === project.id);
      assert.ok(chain);
      const name = String(written?.["name"]);
      const file = join(running.backupsDir, archiveFolder(chain), `${name}.zst`);
      const content = damage(await readFile(file));
      await (content === null ? rm(file) : writeFile(file, content));
      const noticedAt = new Date();
      if (kind === "missing") {
        const { body } = await running.call("POST", of("/drills"));
        assert.deepEqual([body["status"], String(body["problem"]).includes(name)], ["failed", true]);
      } else {
        const { status, body } = await restore({ at: at.toISOString() });
        assert.deepEqual([status, body["code"]], [409, "wal_missing"]);
        assert.ok(String(body["error"]).includes(name), String(body["error"]));
        const [nearest = ""] = /\d{4}-\S+Z/.exec(String(body["error"])) ?? [];
        assert.ok(
          new Date(nearest) >= known && new Date(nearest) <= at,
          `${nearest} is not after ${known.toISOString()}`,
        );
        const near = await restore({ at: nearest });
        assert.equal(near.status, 201, near.text);
        assert.ok([before, before + 20_000].includes((await rowsIn(near.body["database"] as string)) as number));
        await drop(near.body["database"] as string);
      }
      assert.match(await copiedAgain(noticedAt), new RegExp(`${name} was found missing or damaged`));
      assert.equal((await restore({ at: at.toISOString() })).body["code"], "target_outside_window");
    });

  it("is restored without the log that was written long after it", async () => {
    const at = new Date((await now()).getTime() + 1);
    await project.query("create table filler (body text)");
    for (let mark = 1; mark <= 3; mark += 1) {
      await project.query("insert into filler select md5(i::text) from generate_series(1, 200000) i");
      await isStoredAt(await now());
    }
    const chain = (await openChains(running.platform.db)).find(({ project_id }) => project_id === project.id);
    assert.ok(chain);
    const newest = `${segmentName(chain, chain.stored_position - chain.segment_bytes)}.zst`;
    const file = join(running.backupsDir, archiveFolder(chain), newest);
    const whole = await readFile(file);
    await rm(file);
    const { status, body, text } = await restore({ at: at.toISOString() });
    await writeFile(file, whole);
    assert.equal(status, 201, text);
    assert.equal(await rowsIn(body["database"] as string), (await project.query("select from notes")).length);
    await drop(body["database"] as string);
    await project.query("drop table filler");
  });

  it("is proved by a drill, whose evidence another program checks", async () => {
    const { status, body, text } = await running.call("POST", of("/drills"));
    assert.equal(status, 201, text);
    const { evidence, sha256, ...shown } = body as unknown as Drill;
    assert.deepEqual([shown.status, shown.problem], ["passed", null]);
    const live = Number((await project.query("select count(*) as n from notes"))[0]?.["n"]);
    assert.deepEqual(evidence.tables, [{ table: "public.notes", rows: live, live_rows: live }]);
    assert.equal(createHash("sha256").update(sorted(evidence)).digest("hex"), sha256);
    const file = join(running.backupsDir, evidence.copy.key);
    assert.equal((await runOk({ file: "sha256sum", args: [file] })).stdout.split(" ")[0], evidence.copy.sha256);
    const folder = dirname(file);
    const names = (await readdir(folder)).filter((name) => /^[0-9A-F]{24}\.zst$/.test(name)).toSorted();
    const first = names.indexOf(`${evidence.log.first}.zst`);
    const log = createHash("sha256");
    for (const name of names.slice(first, first + evidence.log.segments))
      log.update(zstdDecompressSync(await readFile(join(folder, name))));
    assert.equal(log.digest("hex"), evidence.log.sha256);
  });

  it("is not proved by a drill from a damaged copy, which is told to the operator and made again", async () => {
    const { db } = running.platform;
    const copy = await db
      .selectFrom("archive_copy")
      .select("storage_key")
      .where("project_id", "=", project.id)
      .where("status", "=", "completed")
      .orderBy("id", "desc")
      .executeTakeFirstOrThrow();
    const file = join(running.backupsDir, copy.storage_key);
    const whole = await readFile(file);
    const flipped = Buffer.from(whole);
    flipped[whole.length >> 1] = (flipped[whole.length >> 1] ?? 0) ^ 4;
    await writeFile(file, flipped);
    const noticedAt = new Date();
    const { body } = await running.call("POST", of("/drills"));
    assert.equal(body["status"], "failed", JSON.stringify(body));
    assert.ok((await troubledDrills(db)).some(({ subject }) => subject.endsWith(`/${project.slug}`)));
    assert.match(await copiedAgain(noticedAt), /copy in the archive was found missing or damaged/);
    assert.equal((await running.call("POST", of("/drills"))).body["status"], "passed");
    assert.deepEqual(await troubledDrills(db), []);
  });

  it("is the one before a deployment, by its number", async () => {
    const owner = { org_id: running.org.id, project_id: project.id };
    const [before] = await project.query("select count(*)::int as n from notes");
    await sleep(5);
    const build_id = await testBuild(running.api.platform, owner, { status: "succeeded" });
    await testDeployment(running.api.platform, owner, { build_id, number: 7, status: "retired" });
    await project.query("insert into notes (body) values ('from the release command')");
    const { status, body, text } = await restore({ before_deployment: 7 });
    assert.equal(status, 201, text);
    assert.equal(await rowsIn(body["database"] as string), before?.["n"]);
    await drop(body["database"] as string);
  });

  it("leaves a gap by name where the log could not be kept, and is restorable again after it", async () => {
    const spec = { ...(await project.row()), password: "unused", access: "open" } as const;
    const { windows: known } = await archive();
    await running.host.history(spec.id)?.end(spec);
    await project.query("insert into notes (body) select md5(i::text) from generate_series(1, 40000) i");
    await project.query("vacuum notes");
    await running.host.stop(spec.id);
    await running.platform.wakeups.send(running.platform.db, "databases");
    const found = await eventually(async () => {
      await store();
      const seen = await archive();
      return seen.windows.length === known.length + 1 && seen;
    }, "a new chain has a copy");
    assert.match(found.gaps.at(-1)?.reason ?? "", /had to drop it/);
    const [last, next] = found.windows.slice(-2);
    assert.equal((await restore({ at: next?.from })).status, 201);
    assert.equal((await restore({ at: last?.to })).status, 201);
    const between = new Date((Date.parse(last?.to ?? "") + Date.parse(next?.from ?? "")) / 2);
    assert.equal((await restore({ at: between.toISOString() })).body["code"], "target_outside_window");
  });

  it("loses its oldest moments first when it is over the project's limit, with their files", async () => {
    const { db } = running.platform;
    const row = await project.row();
    const stored = async () =>
      (await readdir(running.backupsDir, { recursive: true })).filter((name) => name.endsWith(".zst"));
    const before = await stored();
    await db.updateTable("project").set({ backups_limit_bytes: 1 }).where("id", "=", project.id).execute();
    await applyArchiveRetention(running.platform, row, never);
    const { windows } = await archive();
    assert.equal(windows.length, 1);
    await deleteExpiredChains(running.platform, never);
    const after = await stored();
    assert.ok(after.length < before.length);
    const [kept = ""] = after.map((name) => name.split("/").at(-2));
    assert.ok(
      after.every((name) => name.includes(kept)),
      "files of the chain that is left",
    );
    assert.equal((await restore({ at: windows[0]?.to })).status, 201);
  });

  it("forgets copies that a killed control plane has not finished", async () => {
    const { db } = running.platform;
    const [chain] = (await openChains(db)).filter(({ project_id }) => project_id === project.id);
    assert.ok(chain);
    const { storage_key } = await beginCopy(db, chain);
    await writeFile(join(running.backupsDir, storage_key), "half a copy");
    await running.startTask(() => archivesTask(running.platform));
    await eventually(async () => (await unfinishedCopies(db)).length === 0, "the copy is forgotten");
    await assert.rejects(readFile(join(running.backupsDir, storage_key)), { code: "ENOENT" });
  });

  it("is proved by another drill half an hour after one that three kills of the control plane ended", async () => {
    const { db, wakeups } = running.platform;
    const window = { startHour: 0, hours: 24 };
    const due = lastDue(project.id, { ...window, startHour: 12 }, new Date(Date.now() + 86_400_000)).getTime();
    const key = { org_id: running.org.id, project_id: project.id };
    const killed = await db.transaction().execute(async (tx) => {
      const drill = await requestDrill(tx, wakeups, { ...key, origin: "daily" });
      assert.ok(drill);
      await tx.updateTable("backup_operation").set({ attempts: 3 }).where("id", "=", drill.id).execute();
      const created_at = new Date(due + 60_000).toISOString();
      await tx.updateTable("archive_drill").set({ created_at }).where("id", "=", drill.id).execute();
      return drill;
    });
    const drills = async () =>
      (await running.call("GET", of("/drills"))).body["drills"] as unknown as (Drill & {
        id: string;
        origin: string;
      })[];
    await eventually(async () => (await drills())[0]?.status === "failed", "the drill has ended");
    assert.match((await drills())[0]?.problem ?? "", /failed several times/);
    const askAt = (minutes: number) => requestDueDrills(running.platform, window, new Date(due + minutes * 60_000));
    await askAt(10);
    assert.equal((await drills())[0]?.id, killed.id);
    await askAt(40);
    await eventually(async () => {
      const [newest] = await drills();
      return newest?.id !== killed.id && newest?.origin === "daily" && newest.status === "passed";
    }, "another drill has passed");
  });

  it("begins anew, with a gap by name, when its log becomes too long because no copy can be made", async () => {
    refusesCopies = true;
    const { db } = running.platform;
    await db
      .updateTable("archive_copy")
      .set({ log_bytes: 1024 ** 3 })
      .where("project_id", "=", project.id)
      .execute();
    await eventually(async () => {
      await project.query("insert into notes (body) values ('without a copy')");
      await store();
      const chains = await db.selectFrom("archive_chain").select("end_reason").execute();
      return chains.some(({ end_reason }) => /No copy of the database could be made/.test(end_reason ?? ""));
    }, "the chain has ended");
    assert.equal((await archive()).windows.length, 1, "what was stored before can still be restored");
    refusesCopies = false;
  });

  it("is kept no more once it is turned off, and what was kept stays", async () => {
    const before = await archive();
    const off = await running.call("PATCH", of("/database/archive"), { enabled: false });
    assert.equal(off.body["status"], "off");
    await eventually(async () => {
      const open = await running.platform.db
        .selectFrom("archive_chain")
        .select("id")
        .where("ended_at", "is", null)
        .execute();
      return open.length === 0;
    }, "the chain has ended");
    assert.deepEqual((await archive()).windows.length, before.windows.length);
  });

  it("is gone with a purged project", async () => {
    const { db } = running.platform;
    await db.updateTable("project").set({ purged_at: new Date().toISOString() }).where("id", "=", project.id).execute();
    const chain = await db.selectFrom("archive_chain").selectAll().orderBy("id", "desc").executeTakeFirstOrThrow();
    const { stored_position: end, segment_bytes: size } = chain;
    const folder = join(running.backupsDir, archiveFolder(chain));
    // A platform that was restored does not know what was stored after its last backup.
    await mkdir(folder, { recursive: true });
    for (const behind of [1, 2]) await writeFile(join(folder, `${segmentName(chain, end + behind * size)}.zst`), "log");
    // A look that had begun before the archive was turned off may have stored something since.
    await eventually(async () => {
      await deleteExpiredChains(running.platform, never);
      const names = await readdir(join(running.backupsDir, "archive"), { recursive: true });
      return !names.some((name) => name.includes("."));
    }, "its files are gone");
    assert.deepEqual(
      await db.selectFrom("archive_chain").select("id").where("project_id", "=", project.id).execute(),
      [],
    );
  });
});

describe("a database whose clock is set back", { skip: missingPart }, () => {
  it("shows the moments since then as soon as there is a copy, and the others as before", async () => {
    const running = await startBackupPlatform();
    try {
      let aheadMs = 3_600_000;
      const { platform, host } = running;
      const shifted = (at: Date) => new Date(at.getTime() + aheadMs);
      const ahead = <T extends { readonly at: Date }>(seen: T) => ({ ...seen, at: shifted(seen.at) });
      const history = (id: string) => {
        const real = host.history(id);
        return (
          real && {
            ...real,
            position: async (...given: Parameters<typeof real.position>) => ahead(await real.position(...given)),
            copy: async (...given: Parameters<typeof real.copy>) => ahead(await real.copy(...given)),
          }
        );
      };
      const postgresHost = { ...host, history };
      await running.startTask(() => archivesTask({ ...platform, ports: { ...platform.ports, postgresHost } }));
      const project = await running.project();
      const archive = async () =>
        (await running.call("GET", `/v1/projects/${project.slug}/database/archive`)).body as unknown as Archive;
      const windows = (length: number) =>
        eventually(async () => {
          await platform.wakeups.send(platform.db, "archives");
          const { windows: found } = await archive();
          return found.length === length && found;
        }, `${length} windows`);
      const [early] = await windows(1);
      await project.query("create table notes as select 1 as id");
      await windows(1);
      aheadMs = 0;
      await project.query("insert into notes values (2)");
      await eventually(async () => {
        await platform.wakeups.send(platform.db, "archives");
        const newest = (await archive()).windows.at(-1);
        return newest !== undefined && newest.from < (early?.from ?? "") && Date.parse(newest.to) > Date.now() - 5000;
      }, "a window begins at the clock's time");
      const at = new Date().toISOString();
      const { status, body, text } = await running.call("POST", `/v1/projects/${project.slug}/restore`, { at });
      assert.equal(status, 201, text);
      assert.equal((await project.query("select from notes", body["database"] as string)).length, 2);
    } finally {
      await running.close();
    }
  });
});
