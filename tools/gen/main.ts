import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { openapi } from "../../src/contract/openapi.ts";
import { runOk, systemPath } from "../../src/kit/exec.ts";
import { cloneTemplate, dropClone, ensureTemplate } from "../template-db/template.ts";
import { testServer } from "../template-db/test-server.ts";
import { configText, errorsText, routesText } from "./docs.ts";
import { migrationSumsText } from "./migration-sums.ts";
import { tablesText } from "./tables.ts";
import { findPostgres } from "../template-db/find-postgres.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Writes every generated file; with `--check`, only lists those that differ and returns false if there are any. */
async function generate(check: boolean): Promise<boolean> {
  const files: readonly (readonly [string, string])[] = [
    ["openapi.json", `${JSON.stringify(openapi(await version()), null, 2)}\n`],
    ["docs/errors.md", errorsText()],
    ["docs/routes.md", routesText()],
    ["docs/config.md", configText()],
    ["sql/SHA256SUMS", await migrationSumsText()],
    ...(await filesOfSchema()),
  ];
  const outcomes = await Promise.all(files.map(([path, text]) => (check ? isSame(path, text) : write(path, text))));
  return outcomes.every(Boolean);
}

async function filesOfSchema(): Promise<readonly (readonly [string, string])[]> {
  const server = await testServer();
  const database = await cloneTemplate(server, await ensureTemplate(server));
  const client = new pg.Client({ ...server, database });
  await client.connect();
  try {
    return [
      ["sql/schema.sql", await schemaText({ ...server, database })],
      ["src/store/tables.ts", await formatted("tables.ts", await tablesText(client))],
    ];
  } finally {
    await client.end();
    await dropClone(server, database);
  }
}

async function formatted(name: string, text: string): Promise<string> {
  const args = [join(root, "node_modules/oxfmt/bin/oxfmt"), `--stdin-filepath=${name}`];
  const { stdout } = await runOk({ file: process.execPath, args }, { cwd: root, stdin: text, timeoutMs: 30_000 });
  return stdout;
}

async function version(): Promise<string> {
  return (JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string }).version;
}

async function isSame(path: string, text: string): Promise<boolean> {
  const present = await readFile(join(root, path), "utf8").catch(() => "");
  if (present === text) return true;
  console.log(`${path} is not what would be generated now`);
  return false;
}

async function write(path: string, text: string): Promise<boolean> {
  if (
    await readFile(join(root, path), "utf8").then(
      (present) => present === text,
      () => false,
    )
  )
    return true;
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
  console.log(`wrote ${path}`);
  return true;
}

if (!(await generate(process.argv.includes("--check")))) process.exitCode = 1;

/** Returns the text of `sql/schema.sql`: the schema after all migrations, as pg_dump writes it, without what differs between machines. */
async function schemaText(connection: pg.ClientConfig): Promise<string> {
  const { host = "", port = 5432, user = "", database = "" } = connection;
  const args = [
    "--schema-only",
    "--no-owner",
    "--no-privileges",
    "-h",
    host,
    "-p",
    String(port),
    "-U",
    user,
    "-d",
    database,
  ];
  const password = typeof connection.password === "string" ? { PGPASSWORD: connection.password } : {};
  const env = { PATH: systemPath, LC_ALL: "C.UTF-8", ...password };
  const { stdout } = await runOk(
    { file: join(findPostgres(), "pg_dump"), args },
    { env, timeoutMs: 30_000, maxOutputBytes: 16 * 1024 * 1024 },
  );
  return `-- Generated from the migrations by \`npm run gen\`. Do not edit.\n\n${normalise(stdout)}`;
}

// Removes comments, session settings and psql's own commands: they depend on versions and are not part of the schema.
function normalise(dump: string): string {
  const kept = dump.split("\n").filter((line) => !/^(?:--|SET |SELECT pg_catalog\.set_config|\\)/.test(line));
  return `${kept
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim()}\n`;
}
