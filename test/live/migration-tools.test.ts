import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createLocalPostgresHost } from "../../src/adapters/postgres-host-local/local-postgres-host.ts";
import { login, makeTestPlace, missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { lossesOf } from "../../src/features/rehearsals/rehearsals.ts";
import { runOk, systemPath } from "../../src/kit/exec.ts";
import { loginOf, newDatabaseSpec } from "../../src/ports/postgres-host.suite.ts";
import { runsAll } from "../support/draw-cases.ts";
import { guardMs } from "../support/eventually.ts";
import { rehearseOnCopy } from "../support/rehearse-on-copy.ts";
import { schema } from "../support/tool-migrations.ts";
import { withoutPypi } from "../support/without-pypi.ts";
import { migrationTools, type MigrationTool, type RealMigration } from "./migration-tools.ts";

// `rehearsed-migrations.test.ts` sends what tools send; this file runs the tools themselves.
const skip = !runsAll && "SKIPPED: it installs nine tools; npm test -- --all runs it";
const limits = { rows: 100, percent: 1 };
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(?:npm_(?!config_)|NODE_TEST)/.test(name)),
) as Record<string, string>;

describe("what a rehearsal tells about migrations that their own tools run", { skip: missingPart || skip }, () => {
  const place = makeTestPlace();
  const host = createLocalPostgresHost(place.options);
  const spec = newDatabaseSpec();
  const dir = mkdtempSync(join(tmpdir(), "berth-tools-"));

  before(async () => {
    const session = await login(await host.ensure(spec), loginOf(spec));
    await session.query(schema);
    await session.end();
  });
  after(async () => {
    await host.destroy(spec.id);
    place.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  async function install({ name, packages, from }: MigrationTool): Promise<string> {
    const folder = join(dir, name);
    mkdirSync(folder);
    const within = { cwd: folder, env: { ...env, PATH: `${dirname(process.execPath)}:${env["PATH"] ?? systemPath}` } };
    const step = (file: string, ...args: string[]) => runOk({ file, args }, { ...within, timeoutMs: guardMs });
    if (from === "debian") {
      await step("apt-get", "download", "--quiet", "-o", "APT::Sandbox::User=root", ...packages);
      for (const file of readdirSync(folder)) await step("dpkg-deb", "--extract", file, ".");
    } else if (from === "maven") {
      const dependencies = packages.map((each) => {
        const [groupId, artifactId, version] = each.split(":");
        return `<dependency><groupId>${groupId}</groupId><artifactId>${artifactId}</artifactId><version>${version}</version></dependency>`;
      });
      const own =
        "<modelVersion>4.0.0</modelVersion><groupId>test</groupId><artifactId>test</artifactId><version>1</version>";
      const pom = `<project>${own}<dependencies>${dependencies.join("")}</dependencies></project>`;
      writeFileSync(join(folder, "pom.xml"), pom);
      await step("mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=jars");
    } else if (from === "pypi") {
      await step("python3", "-m", "venv", "venv");
      await step("venv/bin/pip", "install", "--quiet", ...packages);
    } else {
      writeFileSync(join(folder, "package.json"), `{"private":true}`);
      await step(
        "npm",
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "pg@8.23.1",
        ...packages,
      );
    }
    return folder;
  }

  const rehearse = async (folder: string, tool: MigrationTool, migration: RealMigration) => {
    let toolRanMs = 0;
    const told = await rehearseOnCopy(host, spec, async ({ port, password }) => {
      const cwd = mkdtempSync(join(folder, "run-"));
      for (const [path, text] of Object.entries({ ...tool.files, ...migration.files })) {
        mkdirSync(dirname(join(cwd, path)), { recursive: true });
        writeFileSync(join(cwd, path), text);
      }
      const DATABASE_URL = `postgres://${spec.role_name}:${password}@127.0.0.1:${port}/${spec.database_name}`;
      const bins = [join(folder, "node_modules/.bin"), join(folder, "venv/bin"), dirname(process.execPath)];
      const PATH = [...bins, env["PATH"] ?? systemPath].join(":");
      const [program, ...args] = tool.command;
      const began = performance.now();
      await runOk({ file: program, args }, { cwd, env: { ...env, PATH, DATABASE_URL }, timeoutMs: guardMs });
      toolRanMs = performance.now() - began;
    });
    return { ...told, toolRanMs };
  };

  for (const tool of migrationTools)
    it(tool.name, async (t) => {
      const reason = tool.from === "pypi" ? await withoutPypi() : null;
      if (reason !== null) return t.skip(reason);
      const isOptional = tool.from === "debian" || tool.from === "maven";
      const folder = await install(tool).catch((error: Error) => {
        if (!isOptional) throw error;
        return t.skip(`SKIPPED: ${tool.name} cannot be installed from ${tool.from}: ${error.message.split("\n")[0]}`);
      });
      if (folder === undefined) return;
      for (const migration of tool.migrations)
        await t.test(migration.what, async () => {
          const { failure, report, told, toolRanMs } = await rehearse(folder, tool, migration);
          assert.equal(failure, undefined, String(failure));
          const lines = [...tool.noted, ...migration.lines];
          assert.equal(told.length, lines.length, told.join("\n"));
          for (const line of lines) {
            const found = told.map((each) => line.exec(each)).find((each) => each !== null);
            assert.ok(found, `${line} is none of\n${told.join("\n")}`);
            const seconds = Number(found.groups?.["held"] ?? 1);
            assert.ok(seconds >= 0.9, `held for ${seconds} s`);
            assert.ok(seconds * 1000 <= Math.max(1000, toolRanMs), `held for ${seconds} s of ${toolRanMs} ms`);
          }
          assert.doesNotMatch(JSON.stringify(report), /secret/);
          const losses = lossesOf(report, limits).map(({ table }) => table);
          assert.deepEqual(losses.toSorted(), migration.losses);
        });
    });
});
