import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { postgresHostDouble, runtimeDouble } from "../../test/support/port-doubles.ts";
import { testFolder } from "../../test/support/test-folder.ts";
import { newDatabaseSpec } from "../ports/postgres-host.suite.ts";
import type { DatabaseSpec } from "../ports/postgres-host.ts";
import { pgPortsOf, pgSettings } from "./pg-settings.ts";
import { joinPostgresHosts, missingOnServer, withMissing } from "./postgres-hosts.ts";

const read = pgSettings.pgUrl.read;

describe("BERTH_PG_URL", () => {
  it("is read as libpq reads it: several hosts, encoded characters, the folder of a socket", () => {
    assert.equal(read(undefined), null);
    assert.deepEqual(read("postgresql://berth:p%40ss@10.0.0.7,db2:6432/admin?target_session_attrs=read-write"), {
      hosts: [
        { host: "10.0.0.7", port: 5432 },
        { host: "db2", port: 6432 },
      ],
      ...{ user: "berth", password: "p@ss", database: "admin", tls: null, caFile: null },
    });
    const socket = { host: "/var/run/postgresql", port: 5433 };
    assert.deepEqual(read("postgres://berth@%2Fvar%2Frun%2Fpostgresql:5433"), {
      ...{ hosts: [socket], user: "berth", password: "", database: "postgres", tls: null, caFile: null },
    });
    assert.deepEqual(read("postgresql://berth@db/?sslmode=verify-full")?.tls, { mode: "verify-full", ca: null });
  });

  for (const [url, why] of [
    ["10.0.0.7:5432", /must be like/],
    ["postgresql://10.0.0.7/postgres", /with a user/],
    ["postgresql://berth:secret@localhost/postgres", /applications cannot reach the server at localhost/],
    ["postgresql://berth:secret@127.0.0.1/postgres", /applications cannot reach the server at 127/],
    ["postgresql://berth:secret@[fd00::7]/postgres", /a host must be a name, an IPv4 address/],
    ["postgresql://berth:secret@db/postgres?sslmode=prefer", /sslmode must be disable or require/],
    ["postgresql://berth:secret@db/postgres?connect_timeout=3", /connect_timeout is not supported/],
    [
      "postgresql://berth:secret@db/postgres?sslmode=require&sslrootcert=/x",
      /sslmode must be verify-full or verify-ca/,
    ],
    ["postgresql://berth:secret@db/postgres?sslmode=verify-full&sslrootcert=/nonexistent", /cannot be read \(ENOENT\)/],
  ] as const)
    it(`refuses ${url} with a sentence that does not tell the password`, () => {
      assert.throws(
        () => read(url),
        (error: Error) =>
          why.test(error.message) && error.message.startsWith("BERTH_PG_URL") && !/secret/.test(error.message),
      );
    });

  it("opens the addresses of its hosts to sandboxes, and none for a socket", async () => {
    const pgUrl = read("postgresql://berth@192.0.2.7,192.0.2.8:6432,%2Frun%2Fpg/postgres");
    assert.deepEqual(await pgPortsOf({ pgUrl }), [
      { address: "192.0.2.7", port: 5432 },
      { address: "192.0.2.8", port: 6432 },
    ]);
  });
});

describe("databases on this machine and on an existing server", () => {
  const dir = testFolder("hosts");
  const made: string[] = [];
  const hostAt = (name: string) =>
    postgresHostDouble({
      ensure: async ({ id }: DatabaseSpec) => {
        made.push(`${id} ${name}`);
        return { host: name, port: 5432, engine_version: "17.0" };
      },
      observe: async () => ({ state: "absent" }),
      hasProcess: () => true,
      destroy: async () => {},
    });
  const [local, server] = [hostAt("local"), hostAt("server")];
  const [old, fresh] = [newDatabaseSpec(), newDatabaseSpec()];
  mkdirSync(join(dir, old.id));

  it("leaves a database where it is, and makes new ones on the server", async () => {
    const both = joinPostgresHosts({ local, server, dir });
    await both.ensure(old);
    await both.ensure(fresh);
    assert.deepEqual(made.splice(0), [`${old.id} local`, `${fresh.id} server`]);
  });

  it("makes none anew on this machine that is on a server which is no longer set", async () => {
    const alone = joinPostgresHosts({ local, server: null, dir });
    await assert.rejects(alone.ensure(fresh), /is on the server of BERTH_PG_URL, which is not set/);
    assert.deepEqual(await alone.observe(fresh), { state: "stopped" });
    assert.equal(alone.hasProcess(fresh.id), false);
    await assert.rejects(alone.destroy(fresh.id), /BERTH_PG_URL/);
    assert.deepEqual(made, []);
    await joinPostgresHosts({ local, server, dir }).destroy(fresh.id);
    await alone.ensure(fresh);
    assert.deepEqual(made, [`${fresh.id} local`]);
  });

  it("lists what is on this machine although the server is away", async () => {
    const away = postgresHostDouble({ list: () => Promise.reject(new Error("away")) });
    const here = postgresHostDouble({ list: async () => [old.id] });
    assert.deepEqual(await joinPostgresHosts({ local: here, server: away, dir }).list(), [old.id]);
  });

  it("says what does not hold on a server, beside what the runtime says", async () => {
    const described = { name: "process", network: "veth", isolation: [], missing: [] } as const;
    const runtime = withMissing(runtimeDouble({ describe: async () => described }), () => missingOnServer(["erp"]));
    const { missing } = await runtime.describe();
    assert.deepEqual(
      missing.map(({ part }) => part),
      ["database_servers", "databases_of_others"],
    );
    assert.match(missing[1]?.effect ?? "", /erp/);
    assert.deepEqual(
      missingOnServer([]).map(({ part }) => part),
      ["database_servers"],
    );
  });
});
