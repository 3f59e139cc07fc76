import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createLocalPostgresHost } from "../src/adapters/postgres-host-local/local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "../src/adapters/postgres-host-local/test-fixture.ts";
import { rehearsalLines } from "../src/contract/rehearsal.ts";
import { lossesOf, reportOf } from "../src/features/rehearsals/rehearsals.ts";
import { loginOf, newDatabaseSpec } from "../src/ports/postgres-host.suite.ts";
import { drawCases } from "./support/draw-cases.ts";
import { schema, toolMigrations, type ToolMigration } from "./support/tool-migrations.ts";

// Drawn with other data files: each migration runs on a copy of a real instance.

const { signal } = new AbortController();
const password = "of-the-copy";
const limits = { rows: 100, percent: 1 };
/** A table that was locked more shortly than a sample takes may be named or not. */
const briefly = / locked for less than 0\.1 s$/;

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
  async function rehearse({ messages }: ToolMigration) {
    const history = host.history(spec.id);
    assert.ok(history);
    const copy = await history.clone(spec, { mayCopy: true, password, signal });
    try {
      const earlier = await copy.tables(spec.database_name, signal);
      const watch = await copy.watch(spec.database_name);
      const session = await login({ ...copy.server, engine_version: "" }, { ...loginOf(spec), password });
      const failure = await (async () => {
        for (const message of messages) await session.query(message);
      })().catch((error: unknown) => error);
      await session.end();
      const locks = await watch.end();
      const later = await copy.tables(spec.database_name, signal);
      const exit_code = failure === undefined ? 0 : 1;
      return { failure, report: reportOf({ before: earlier, after: later, locks, seconds: 1, exit_code }) };
    } finally {
      await history.discardClone(spec.id);
    }
  }

  for (const migration of drawCases(toolMigrations, 6))
    it(migration.what, async () => {
      const { failure, report } = await rehearse(migration);
      assert.equal(failure !== undefined, migration.fails === true, String(failure));
      const told = rehearsalLines(report)
        .filter((line) => !briefly.test(line))
        .toSorted();
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
