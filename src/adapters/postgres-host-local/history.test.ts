import assert from "node:assert/strict";
import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { unixSocketOf } from "../../kit/server-address.ts";
import { loginOf, newDatabaseSpec } from "../../ports/postgres-host.suite.ts";
import {
  HistoryNeedsRestart,
  segmentName,
  type CopySummary,
  type LogPosition,
  DatabaseWorkFailed,
} from "../../ports/postgres-host.ts";
import { createLocalPostgresHost } from "./local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "./test-fixture.ts";

const { signal } = new AbortController();

describe("the history of a local instance", { skip: missingPart }, () => {
  const place = makeTestPlace();
  const host = createLocalPostgresHost(place.options);
  const spec = newDatabaseSpec();
  const history = () => {
    const found = host.history(spec.id);
    assert.ok(found);
    return found;
  };
  const query = async (sql: string, database = spec.database_name) => {
    const session = await login(await host.ensure(spec), { ...loginOf(spec), database });
    try {
      return await session.query(sql);
    } finally {
      await session.end();
    }
  };
  let archive = Buffer.alloc(0);
  let copied: CopySummary;
  const stored = new Map<string, Buffer>();
  const copy = async () => {
    const chunks: Buffer[] = [];
    const consume = async (content: Readable) => {
      for await (const chunk of content) chunks.push(chunk as Buffer);
    };
    copied = await history().copy(spec, { consume, signal });
    archive = Buffer.concat(chunks);
  };
  /** Stores the log up to its end, as the control plane does. */
  const ship = async (): Promise<LogPosition> => {
    const log = await history().position(spec);
    const size = log.segment_bytes;
    for (let at = Math.floor(copied.start / size) * size; at < log.end; at += size) {
      const end = Math.min(at + size, log.end);
      stored.set(segmentName(log, at), await history().readSegment(spec, log, end));
    }
    return log;
  };
  const restored = async (until: Date | null): Promise<number> => {
    const segments = (async function* () {
      for (const [name, content] of stored) yield { name, content };
    })();
    const { backup_label, segment_bytes } = copied;
    const from = { archive: Readable.from([archive]), backup_label, segment_bytes, segments, until, signal };
    const recovered = await history().recover(spec, from);
    assert.deepEqual(await recovered.listDatabases(), [spec.database_name]);
    const summary = await recovered.dump(spec.database_name, {
      signal,
      isCompressed: false,
      consume: async (content) => void (await content.toArray()),
    });
    return summary.counts.find(({ table }) => table === "public.ledger")?.rows ?? -1;
  };

  before(async () => {
    await host.ensure(spec);
    await query("create table ledger (n bigserial, written timestamptz not null default clock_timestamp())");
    await history().position(spec);
  });
  after(async () => {
    await host.destroy(spec.id);
    place.remove();
  });

  it("shows every moment since a copy that was made under writes, with exactly what was committed by then", async () => {
    const moments: { readonly at: Date; readonly rows: number }[] = [];
    let isWriting = true;
    const writer = (async () => {
      const session = await login(await host.ensure(spec), loginOf(spec));
      for (let rows = 1; isWriting; rows += 1) {
        await session.query("insert into ledger default values");
        const [clock] = await session.query("select clock_timestamp() as at");
        moments.push({ at: clock?.["at"] as Date, rows });
        await sleep(2);
      }
      await session.end();
    })();
    await copy();
    await sleep(500);
    isWriting = false;
    await writer;
    await ship();
    const possible = moments.filter(({ at }) => at > copied.at);
    assert.ok(possible.length > 20, `${possible.length} moments`);
    for (const at of [0, Math.floor(possible.length / 2), possible.length - 2]) {
      const moment = possible[at] as (typeof moments)[number];
      // A clock time has microseconds and a moment milliseconds: the next whole one comes before the next commit.
      assert.equal(await restored(new Date(moment.at.getTime() + 1)), moment.rows);
    }
    assert.equal(await restored(null), moments.length);
    await host.stop(spec.id);
    assert.throws(
      () => readFileSync(join(place.dir, spec.id, "recovered")),
      { code: "ENOENT" },
      "it stops with its source",
    );
    await host.ensure(spec);
    assert.equal(await restored(new Date()), moments.length, "after the last transaction");
  });

  it("leaves nothing of a recovered copy, and the live database as it was", async () => {
    const rows = await query("select count(*)::int as n from ledger");
    await history().discardRecovered(spec.id);
    await history().discardRecovered(spec.id);
    assert.throws(() => readFileSync(join(place.dir, spec.id, "recovered")), { code: "ENOENT" });
    assert.deepEqual(await query("select count(*)::int as n from ledger"), rows);
  });

  it("does not ask an idle server, and sees each write", async () => {
    await sleep(200);
    await history().position(spec);
    const log = await history().position(spec);
    const socket = unixSocketOf(await host.ensure(spec)) as string;
    renameSync(socket, `${socket}.away`);
    assert.equal((await history().position(spec)).end, log.end);
    renameSync(`${socket}.away`, socket);
    await query("insert into ledger default values");
    assert.ok((await history().position(spec)).end > log.end);
  });

  it("keeps the log until it is released, also over a restart", async () => {
    const log = await history().position(spec);
    await query("insert into ledger select from generate_series(1, 30000)");
    await host.stop(spec.id);
    await host.ensure(spec);
    const later = await history().position(spec);
    assert.ok(later.kept_from <= log.end);
    assert.equal((await history().readSegment(spec, log, log.end)).length > 0, true);
    await history().release(spec, later.end - (later.end % later.segment_bytes));
    assert.ok((await history().position(spec)).kept_from > log.kept_from);
  });

  it("says that a copy cannot be recovered when a part of the log is missing", async () => {
    await copy();
    stored.clear();
    await query("insert into ledger default values");
    await assert.rejects(restored(new Date()), DatabaseWorkFailed);
    assert.equal(await query("select 1 as n").then((rows) => rows[0]?.["n"]), 1);
  });

  it("says that a server must be restarted that was started without room for a slot", async () => {
    const other = newDatabaseSpec();
    const superuser = async (sql: string) => {
      const endpoint = await host.ensure(other);
      const password = readFileSync(join(place.dir, other.id, "superuser-secret"), "utf8");
      const session = await login(endpoint, { user: "berth", password, database: "postgres", way: "socket" });
      await session.query(sql);
      await session.end();
    };
    const position = () => host.history(other.id)?.position(other);
    await superuser("alter system set max_replication_slots = 0");
    await host.stop(other.id);
    await host.ensure(other);
    await assert.rejects(async () => position(), HistoryNeedsRestart);
    await host.stop(other.id);
    await host.ensure(other);
    assert.ok(await position());
    await host.destroy(other.id);
  });
});
