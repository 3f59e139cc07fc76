import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { DatabaseEndpoint } from "../../ports/postgres-host.ts";
import type { SuiteLogin, SuiteSession } from "../../ports/postgres-host.suite.ts";
import { serversFolder } from "../../../tools/template-db/servers-folder.ts";
import type { LocalPostgresHostOptions } from "./local-postgres-host.ts";

/** A place for a test's instances, inside a folder that only its owner can enter. */
export interface TestPlace {
  readonly options: LocalPostgresHostOptions;
  readonly dir: string;
  readonly runBase: string;
  remove(): void;
}

const bubblewrap = "/usr/bin/bwrap";
const installed = "/usr/lib/postgresql";
const asRoot = process.getuid?.() === 0;

/** The reason why tests with real servers cannot run on this machine, or false. */
export const missingPart: string | false =
  (findPrograms() === undefined && "PostgreSQL 15 or later is not installed") ||
  (asRoot && !existsSync(bubblewrap) && "bubblewrap is not installed");

/** Creates a place for instances. `below` makes its path longer; `folder` is usually in memory. The port range is random, so that test files seldom share one. */
export function makeTestPlace(below = "", folder = serversFolder()): TestPlace {
  const top = mkdtempSync(join(folder, "bt-"));
  const runBase = join(top, "r");
  mkdirSync(runBase);
  chmodSync(top, 0o711);
  const closed = join(top, "closed");
  const dir = join(closed, below, "postgres");
  mkdirSync(dir, { recursive: true });
  chmodSync(closed, 0o700);
  const first = 10_000 + Math.floor(Math.random() * 5000);
  const confinement = process.env["BERTH_TEST_PLAIN"] === "1" ? null : bubblewrap;
  const options = {
    binDir: findPrograms() ?? "",
    bwrap: existsSync(bubblewrap) ? confinement : null,
    dir,
    uidBase: asRoot ? 35_000 + Math.floor(Math.random() * 1000) * 20 : null,
    ports: { first, count: 100 },
    runBase,
  };
  return { options, dir, runBase, remove: () => rmSync(top, { recursive: true, force: true }) };
}

/** Logs in like a project's application. */
export async function login(endpoint: DatabaseEndpoint, as: SuiteLogin): Promise<SuiteSession> {
  const host = as.way === "tcp" ? "127.0.0.1" : endpoint.host;
  const client = new pg.Client({
    host,
    port: endpoint.port,
    user: as.user,
    password: as.password,
    database: as.database,
  });
  client.on("error", () => {});
  await client.connect();
  return {
    query: async (sql) => {
      const results = await client.query(sql);
      return results.rows ?? [];
    },
    end: () => client.end(),
  };
}

/** Finds the newest installed PostgreSQL in Debian's layout. */
function findPrograms(): string | undefined {
  const versions = existsSync(installed) ? readdirSync(installed).map(Number) : [];
  const folders = versions.sort((a, b) => b - a).map((version) => join(installed, String(version), "bin"));
  return folders.find((bin) => existsSync(join(bin, "initdb")) && existsSync(join(bin, "postgres")));
}
