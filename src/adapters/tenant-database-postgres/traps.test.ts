import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { tenantDatabaseTrapsSuite } from "../../ports/tenant-database-traps.suite.ts";
import { Asking, found } from "../../ports/tenant-database.suite.ts";
import { testTenant, type TenantFixture } from "./test-tenant.ts";

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
