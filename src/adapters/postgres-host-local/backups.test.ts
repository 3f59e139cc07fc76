import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { readProcessTree } from "../../kit/process-tree.ts";
import { until } from "../../kit/until.ts";
import { postgresHostBackupsSuite } from "../../ports/postgres-host-backups.suite.ts";
import { loginOf, newDatabaseSpec } from "../../ports/postgres-host.suite.ts";
import { DatabaseWorkFailed } from "../../ports/postgres-host.ts";
import { createLocalPostgresHost } from "./local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "./test-fixture.ts";
import { guardMs } from "../../../test/support/eventually.ts";

describe("backups of local instances", { skip: missingPart }, () => {
  const place = makeTestPlace();
  after(() => place.remove());

  postgresHostBackupsSuite(async () => ({ host: createLocalPostgresHost(place.options), login }));

  it("runs pg_dump where it sees no network and none of the machine's files, and with no secret in its command line", async () => {
    const host = createLocalPostgresHost(place.options);
    const spec = newDatabaseSpec();
    const session = await login(await host.ensure(spec), loginOf(spec));
    try {
      await session.query("create table t (a int)");
      await session.query("begin; lock table t");
      let seen: ReturnType<typeof dumping>;
      const consume = async (archive: AsyncIterable<Buffer>) => {
        seen = await until(dumping, { timeoutMs: guardMs });
        await session.query("commit");
        for await (const _ of archive);
      };
      await host.dump(spec, { consume, isCompressed: false, signal: new AbortController().signal });
      assert.ok(seen, "pg_dump was not seen");
      const secret = readFileSync(join(place.dir, spec.id, "backup-secret"), "utf8");
      assert.ok(!seen.line.includes(secret) && !seen.line.includes(spec.password));
      if (place.options.bwrap === null) return;
      assert.match(seen.status, /^CapEff:\t0+$/m);
      assert.match(seen.status, /^NoNewPrivs:\t1$/m);
      assert.ok(!seen.root.includes("root") && !seen.root.includes("home") && !seen.root.includes("tmp"));
      assert.doesNotMatch(seen.devices, /eth|veth|wl/);
    } finally {
      await session.end();
      await host.destroy(spec.id);
    }
  });

  it("says which program is missing", async () => {
    const host = createLocalPostgresHost({ ...place.options, pgDump: null });
    const spec = newDatabaseSpec();
    await host.ensure(spec);
    try {
      const dump = host.dump(spec, {
        consume: async () => {},
        isCompressed: true,
        signal: new AbortController().signal,
      });
      await assert.rejects(
        dump,
        (error) => error instanceof DatabaseWorkFailed && error.reason === "missing" && /pg_dump/.test(error.message),
      );
    } finally {
      await host.destroy(spec.id);
    }
  });
});

/** Returns the pg_dump of this process. Other test files run their own. */
function dumping() {
  for (const { pid, name } of readProcessTree().descendantsOf(process.pid)) {
    try {
      if (name !== "pg_dump") continue;
      const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, "utf8");
      return {
        line: read("cmdline"),
        status: read("status"),
        root: readdirSync(`/proc/${pid}/root`),
        devices: read("net/dev"),
      };
    } catch {
      // It ended while the test read the processes.
    }
  }
  return undefined;
}
