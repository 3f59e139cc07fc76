import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { loginOf, newDatabaseSpec } from "../../ports/postgres-host.suite.ts";
import { CopyIsFull } from "../../ports/postgres-host.ts";
import { createLocalPostgresHost } from "./local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "./test-fixture.ts";

const { signal } = new AbortController();
const password = "of-the-copy";

describe("a copy of a running instance", { skip: missingPart }, () => {
  const place = makeTestPlace();
  const host = createLocalPostgresHost(place.options);
  const spec = newDatabaseSpec();
  const history = () => {
    const found = host.history(spec.id);
    assert.ok(found);
    return found;
  };
  const clone = () => history().clone(spec, { mayCopy: true, password, signal });
  const live = async (sql: string) => ask(await host.ensure(spec), sql);
  const ask = async (at: { host: string; port: number }, sql: string, more = {}) => {
    const session = await login({ ...at, engine_version: "" }, { ...loginOf(spec), ...more });
    try {
      return await session.query(sql);
    } finally {
      await session.end();
    }
  };
  const copyFolder = () => join(place.dir, spec.id, "clone");

  before(async () => {
    await host.ensure(spec);
    await live("create table orders (id int primary key, customer int, note text)");
    await live("insert into orders select n, n, 'x' from generate_series(1, 20000) n; create table plans (id int)");
  });
  after(async () => {
    await host.destroy(spec.id);
    place.remove();
  });

  it("has everything that is committed while others write, and changes nothing of the original", async () => {
    let isWriting = true;
    let acknowledged = 0;
    await live("create table ledger (n int)");
    const endpoint = await host.ensure(spec);
    const writer = (async () => {
      const session = await login(endpoint, loginOf(spec));
      for (let n = 1; isWriting; n += 1) {
        await session.query(`insert into ledger values (${n})`);
        acknowledged = n;
      }
      await session.end();
    })();
    const before = await eventually(async () => acknowledged > 20 && acknowledged, "rows are written");
    const copy = await clone();
    isWriting = false;
    await writer;
    const [found] = await ask(copy.server, "select count(*)::int as rows, max(n) as last from ledger", { password });
    assert.ok(Number(found?.["rows"]) >= before && Number(found?.["rows"]) <= acknowledged);
    assert.equal(found?.["rows"], found?.["last"] ?? 0);
    await ask(copy.server, "drop table orders", { password });
    assert.deepEqual(await live("select count(*)::int as rows from orders"), [{ rows: 20_000 }]);
    await history().discardClone(spec.id);
  });

  it("lets the role in with the copy's password alone, and no superuser without a password", async () => {
    const copy = await clone();
    await assert.rejects(ask(copy.server, "select 1"), { code: "28P01" });
    for (const way of ["tcp", "socket"] as const)
      await assert.rejects(ask(copy.server, "select 1", { user: "berth", password: "", way }));
    await assert.rejects(ask(copy.server, "copy plans to program 'true'", { password }), { code: "42501" });
    await history().discardClone(spec.id);
    assert.equal(existsSync(copyFolder()), false);
  });

  it("reports rewritten files, removed columns and rows, and how long locks were held", async () => {
    const copy = await clone();
    const before = await copy.tables(spec.database_name, signal);
    const watch = await copy.watch(spec.database_name);
    const change =
      "begin; alter table orders alter column customer type bigint, drop column note; select pg_sleep(0.5); commit";
    await ask(copy.server, `${change}; delete from orders where id > 19000; drop table plans`, { password });
    const locks = await watch.end();
    const after = await copy.tables(spec.database_name, signal);
    const [was, is] = [before, after].map((all) => all.find(({ table }) => table === "public.orders"));
    assert.ok(was && is);
    assert.notEqual(was.file, is.file);
    assert.deepEqual([was.rows, is.rows, is.deleted], [20_000, 19_000, 1000]);
    assert.deepEqual([was.columns["3"], is.columns["3"]], ["note", undefined]);
    assert.equal(
      after.some(({ table }) => table === "public.plans"),
      false,
    );
    const held = locks.find(({ table, blocks }) => table === "public.orders" && blocks === "reads");
    assert.ok(held && held.seconds > 0, JSON.stringify(locks));
    await history().discardClone(spec.id);
  });

  it("starts beside other copies that were begun at the same time", async () => {
    const others = Array.from({ length: 2 }, newDatabaseSpec);
    const specs = [spec, ...others];
    for (const each of others) await host.ensure(each);
    const copies = await Promise.all(
      specs.map(async (each) => {
        const copy = await host.history(each.id)?.clone(each, { mayCopy: true, password, signal });
        return copy?.server.port;
      }),
    );
    assert.equal(new Set(copies).size, specs.length, copies.join(", "));
    for (const { id } of specs) await host.history(id)?.discardClone(id);
    for (const { id } of others) await host.destroy(id);
  });

  it("replaces what a killed platform left, and goes with its instance", async () => {
    await clone();
    const copy = await createLocalPostgresHost(place.options)
      .history(spec.id)
      ?.clone(spec, { mayCopy: true, password, signal });
    assert.ok(copy);
    assert.deepEqual(await ask(copy.server, "select count(*)::int as rows from orders", { password }), [
      { rows: 20_000 },
    ]);
    await host.stop(spec.id);
    assert.equal(existsSync(copyFolder()), false);
    assert.deepEqual(
      readdirSync(place.runBase).flatMap((name) =>
        readdirSync(join(place.runBase, name)).filter((each) => each.includes("clone")),
      ),
      [],
    );
    await host.ensure(spec);
  });

  it("copies no bytes where it may only share them", async () => {
    const attempt = history().clone(spec, { mayCopy: false, password, signal });
    await attempt.catch((error: unknown) => assert.ok(error instanceof CopyIsFull));
    await history().discardClone(spec.id);
  });
});
