import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { tenantDatabaseTrapsSuite } from "../../ports/tenant-database-traps.suite.ts";
import { Asking, found } from "../../ports/tenant-database.suite.ts";
import { testTenant, type TenantFixture } from "../../../test/support/tenant.ts";

tenantDatabaseTrapsSuite(() => testTenant());

describe("a database whose connections are all in use", () => {
  let fixture: TenantFixture;
  before(async () => {
    fixture = await testTenant();
  });
  after(() => fixture.close());

  it("is unavailable, and is read again when one is free", async () => {
    const { spec, port, host } = fixture.login;
    const user = { user: spec.role_name, password: spec.password, database: spec.database_name };
    const clients = Array.from({ length: 19 }, () => new pg.Client({ host, port, ...user }));
    for (const client of clients) await client.connect();
    const ask = new Asking(fixture);
    assert.equal((await ask.look("nothing")).outcome, "unavailable");
    for (const client of clients) await client.end();
    assert.equal(
      found(await fixture.database.listTables(fixture.login, { limit: 1, offset: 0, dir: "asc", sort: "name" })).total,
      0,
    );
  });
});

describe("large answers at the same time", () => {
  const large = "SELECT repeat('a', 12 * 1024 * 1024)";
  // Its row has arrived two seconds before its end.
  const slow = `${large} FROM generate_series(1, 2) AS row WHERE row = 1 OR pg_sleep(2) IS NULL`;
  let fixture: TenantFixture;
  before(async () => {
    fixture = await testTenant({ answerBytes: 16 * 1024 * 1024 });
  });
  after(() => fixture.close());

  it("share a limit, which small answers do not feel, and leave nothing behind", async () => {
    const { database, login } = fixture;
    const ask = (statement: string) => database.query(login, statement).then(({ outcome }) => outcome);
    const first = ask(slow);
    await sleep(1000);
    assert.equal(await ask(large), "unavailable");
    assert.equal(await ask("SELECT 1"), "done");
    assert.equal(await first, "done");
    for (let time = 0; time < 3; time += 1) assert.equal(await ask(large), "done");
  });
});
