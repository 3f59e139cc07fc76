import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createLocalPostgresHost } from "../src/adapters/postgres-host-local/local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "../src/adapters/postgres-host-local/test-fixture.ts";
import { lossesOf } from "../src/features/rehearsals/rehearsals.ts";
import { loginOf, newDatabaseSpec } from "../src/ports/postgres-host.suite.ts";
import { drawCases } from "./support/draw-cases.ts";
import { rehearseOnCopy } from "./support/rehearse-on-copy.ts";
import { schema, toolMigrations, type ToolMigration } from "./support/tool-migrations.ts";

// Drawn with other data files: each migration runs on a copy of a real instance.

const limits = { rows: 100, percent: 1 };

describe("what a rehearsal tells about migrations of common tools", { skip: missingPart }, () => {
  const place = makeTestPlace();
  const host = createLocalPostgresHost(place.options);
  const spec = newDatabaseSpec();

  before(async () => {
    const session = await login(await host.ensure(spec), loginOf(spec));
    await session.query(schema);
    await session.end();
  });
  after(async () => {
    await host.destroy(spec.id);
    place.remove();
  });

  /** Runs the messages of a migration on a copy, to the first that fails. */
  const rehearse = ({ messages }: ToolMigration) =>
    rehearseOnCopy(host, spec, async ({ password, ...server }) => {
      const session = await login({ ...server, engine_version: "" }, { ...loginOf(spec), password });
      try {
        for (const message of messages) await session.query(message);
      } finally {
        await session.end();
      }
    });

  for (const migration of drawCases(toolMigrations, 6))
    it(migration.what, async () => {
      const { failure, report, told } = await rehearse(migration);
      assert.equal(failure !== undefined, migration.fails === true, String(failure));
      assert.equal(told.length, migration.lines.length, told.join("\n"));
      for (const line of migration.lines)
        assert.ok(
          told.some((each) => line.test(each)),
          `${line} is none of\n${told.join("\n")}`,
        );
      assert.doesNotMatch(JSON.stringify(report), /secret/);
      const losses = lossesOf(report, limits).map(({ table }) => table);
      assert.deepEqual(losses.toSorted(), migration.losses);
    });
});
