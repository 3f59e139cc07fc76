import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { newId } from "../../kit/ids.ts";
import { loginOf, newDatabaseSpec } from "../../ports/postgres-host.suite.ts";
import { MaskFailed, type BranchOptions, type DatabaseSpec } from "../../ports/postgres-host.ts";
import { createLocalPostgresHost } from "./local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "./test-fixture.ts";

const { signal } = new AbortController();

describe("a branch of a local instance", { skip: missingPart }, () => {
  const place = makeTestPlace();
  const host = createLocalPostgresHost(place.options);
  const spec = newDatabaseSpec();
  const targets: DatabaseSpec[] = [];
  const newTarget = (): DatabaseSpec => {
    const password = randomBytes(16).toString("hex");
    const target = { ...spec, id: newId("dbb"), password, was_ready: true };
    targets.push(target);
    return target;
  };
  const branch = (target: DatabaseSpec, more: Partial<BranchOptions> = {}) => {
    const history = host.history(spec.id);
    assert.ok(history);
    return history.branch(spec, target, { from: null, announce: async () => {}, mask: null, signal, ...more });
  };
  const masked = (sql: string, timeoutMs = 60_000) => ({ mask: { sql, timeoutMs } });
  const ask = async (of: DatabaseSpec, sql: string, as: Partial<ReturnType<typeof loginOf>> = {}) => {
    const session = await login(await host.ensure(of), { ...loginOf(of), ...as });
    try {
      return await session.query(sql);
    } finally {
      await session.end();
    }
  };
  const count = async (of: DatabaseSpec) => (await ask(of, "select count(*)::int as n from people"))[0]?.["n"];

  before(async () => {
    await host.ensure(spec);
    await ask(spec, "create table people (id int primary key, email text)");
    await ask(spec, "insert into people select n, n || '@example.com' from generate_series(1, 1000) n");
  });
  after(async () => {
    for (const each of [spec, ...targets]) await host.destroy(each.id);
    place.remove();
  });

  it("has what is committed while others write, and neither changes the other", async () => {
    await ask(spec, "create table ledger (n int)");
    let isWriting = true;
    let acknowledged = 0;
    const writer = (async () => {
      const session = await login(await host.ensure(spec), loginOf(spec));
      for (let n = 1; isWriting; n += 1) {
        await session.query(`insert into ledger values (${n})`);
        acknowledged = n;
      }
      await session.end();
    })();
    const least = await eventually(async () => acknowledged > 20 && acknowledged, "rows are written");
    const target = newTarget();
    const methods: string[] = [];
    await branch(target, { announce: async (method) => void methods.push(method) });
    isWriting = false;
    await writer;
    assert.equal(methods.length, 1);
    const [found] = await ask(target, "select count(*)::int as rows, max(n) as last from ledger");
    assert.ok(Number(found?.["rows"]) >= least && Number(found?.["rows"]) <= acknowledged);
    assert.equal(found?.["rows"], found?.["last"]);
    await ask(target, "delete from people where id > 10");
    await ask(spec, "delete from people where id > 990");
    assert.deepEqual([await count(target), await count(spec)], [10, 990]);
  });

  it("survives a stop, and knows no password of the original", async () => {
    await host.openSessionRole(spec, { role_name: `${spec.role_name}_t1`, password: "of-a-session" });
    const target = newTarget();
    await branch(target);
    await host.ensure(target);
    await host.stop(target.id);
    assert.equal(await count(target), 990);
    for (const as of [
      { password: spec.password },
      { user: `${spec.role_name}_t1`, password: "of-a-session" },
      { user: "berth", password: "" },
      { user: "berth", password: "", way: "socket" as const },
    ])
      await assert.rejects(ask(target, "select 1", as), JSON.stringify(as));
    await assert.rejects(ask(target, "copy people to program 'true'"), { code: "42501" });
    assert.equal((await ask(target, "show fsync"))[0]?.["fsync"], "on");
    assert.equal((await ask(target, "show restore_command"))[0]?.["restore_command"], "");
  });

  it("is masked as the project's role before it can be reached", async () => {
    const target = newTarget();
    await branch(
      target,
      masked("update people set email = 'x'; create table masked as select current_user::text as by"),
    );
    assert.deepEqual(await ask(target, "select distinct email, by from people, masked"), [
      { email: "x", by: spec.role_name },
    ]);
    assert.equal((await ask(spec, "select email from people where id = 1"))[0]?.["email"], "1@example.com");
  });

  const broken: readonly [string, string, number, RegExp][] = [
    [
      "fails",
      "update people set email = 'x';\nupdate persons set email = 'x'",
      60_000,
      /"persons" does not exist \(line 2\)/,
    ],
    ["asks for more rights", "reset session authorization; copy people to program 'true'", 60_000, /must be superuser/],
    ["hangs", "select pg_sleep(600)", 500, /took longer than 0\.5 s/],
    ["returns too much", "select repeat('x', 1000000) from generate_series(1, 1000)", 60_000, /more than 16 MiB/],
    ["waits for the client", "copy people from stdin", 60_000, /failed/],
    ["ends its own session", "select pg_terminate_backend(pg_backend_pid())", 60_000, /failed/],
  ];
  for (const [what, sql, timeoutMs, message] of broken)
    it(`is refused when its mask ${what}, and can be removed`, async () => {
      const target = newTarget();
      await assert.rejects(branch(target, masked(sql, timeoutMs)), (error) => {
        assert.ok(error instanceof MaskFailed, String(error));
        assert.match(error.message, message);
        return true;
      });
      assert.equal(host.hasProcess(target.id), false);
      await host.destroy(target.id);
      assert.equal(existsSync(join(place.dir, target.id)), false);
    });

  it("replaces what an interrupted attempt left", async () => {
    const target = newTarget();
    const stopped = new AbortController();
    const reason = new Error("the platform stops");
    const announce = async () => stopped.abort(reason);
    await assert.rejects(branch(target, { announce, signal: stopped.signal }), reason);
    mkdirSync(join(place.dir, target.id, "data"), { recursive: true });
    writeFileSync(join(place.dir, target.id, "data", "half"), "");
    await branch(target);
    assert.equal(await count(target), 990);
    assert.equal(existsSync(join(place.dir, target.id, "data", "half")), false);
  });
});
