import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import { after, test } from "node:test";
import { sql } from "kysely";
import { testDatabase } from "../../test/support/database.ts";
import { silentLog } from "../kit/log.ts";
import { openWakeups, type Topic } from "./wakeups.ts";
import { guardMs } from "../../test/support/eventually.ts";

const { db, connection, drop } = await testDatabase();
const wakeups = await openWakeups({ connection, log: silentLog });
after(async () => {
  await wakeups.close();
  await drop();
});

function next(topic: Topic): Promise<unknown[]> {
  const emitter = new EventEmitter();
  const stop = wakeups.on(topic, (id) => {
    stop();
    emitter.emit("id", id);
  });
  return once(emitter, "id", { signal: AbortSignal.timeout(guardMs) });
}

test("a wake-up reaches the listeners of its topic with its id", async () => {
  const heard = next("builds");
  await wakeups.send(db, "releases", "other");
  await wakeups.send(db, "builds", "bld_1");
  assert.deepEqual(await heard, ["bld_1"]);
});

test("a wake-up of a transaction that is rolled back is never heard", async () => {
  const heard = next("apps");
  await assert.rejects(
    db.transaction().execute(async (tx) => {
      await wakeups.send(tx, "apps", "rolled back");
      throw new Error("no");
    }),
  );
  await db.transaction().execute((tx) => wakeups.send(tx, "apps", "committed"));
  assert.deepEqual(await heard, ["committed"]);
});

test("after the connection broke, every listener is told to look at everything", async () => {
  const heard = [next("tokens"), next("edge")];
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen berth' and datname = current_database()`.execute(
    db,
  );
  assert.deepEqual(await Promise.all(heard), [[""], [""]]);
  const again = next("tokens");
  await wakeups.send(db, "tokens", "tok_1");
  assert.deepEqual(await again, ["tok_1"]);
});

test("a listener that fails does not keep others from hearing", async () => {
  const stop = wakeups.on("logs", () => {
    throw new Error("broken");
  });
  const heard = next("logs");
  await wakeups.send(db, "logs");
  assert.deepEqual(await heard, [""]);
  stop();
});
