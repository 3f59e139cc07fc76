import { join } from "node:path";
import type pg from "pg";
import { runOk, systemPath } from "../../src/kit/exec.ts";
import { findPostgres } from "../template-db/find-postgres.ts";

/** Returns the text of `sql/schema.sql`: the schema after all migrations, as pg_dump writes it, without what differs between machines. */
export async function schemaText(connection: pg.ClientConfig): Promise<string> {
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
