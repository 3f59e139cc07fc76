import { mkdirSync, chownSync, readdirSync, readFileSync, rmSync, writeFileSync, renameSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { runOk, start } from "../../src/kit/exec.ts";
import { identify, isAlive, type ProcessIdentity } from "../../src/kit/processes.ts";
import { until } from "../../src/kit/until.ts";
import { findPostgres } from "./find-postgres.ts";
import type { Ready } from "./shared-server.ts";

// Runs the shared test server in the given folder, and ends it when no registered process is alive.
const idleMs = 5000;
const folder = process.argv[2] as string;
const connection: pg.ClientConfig = { host: folder, port: 5432, user: "berth", database: "postgres" };

await keep();

async function keep(): Promise<void> {
  const owner = unprivileged();
  const server = await startServer(findPostgres(), owner);
  const ready: Ready = { connection, keeper: identify(process.pid) as ProcessIdentity };
  do {
    announce(ready);
    await whileUsed(server);
    // Announce the end first, then check for users again: a process that registers later sees the announcement and waits.
    rmSync(join(folder, "ready.json"), { force: true });
  } while (server.exitCode === null && users() > 0);
  server.kill("SIGQUIT");
  await until(() => server.exitCode ?? server.signalCode ?? undefined, { timeoutMs: 10_000 });
  // Move the folder away together with the lock: a process that registers now creates its own folder.
  const ended = `${folder}.${process.pid}`;
  renameSync(folder, ended);
  rmSync(ended, { recursive: true, force: true, maxRetries: 3 });
}

interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/** PostgreSQL refuses to run as root, and initdb needs a user that exists: `postgres`, else `nobody`. */
function unprivileged(): Owner {
  if (userInfo().uid !== 0) return {};
  const lines = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const user = lines.find(([name]) => name === "postgres") ?? lines.find(([name]) => name === "nobody");
  if (!user) throw new Error("there is no unprivileged user to run PostgreSQL as");
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

async function startServer(bin: string, owner: Owner) {
  const data = join(folder, "data");
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data, { mode: 0o700 });
  if (owner.uid !== undefined) for (const path of [data, folder]) chownSync(path, owner.uid, owner.gid as number);
  const env = { LC_ALL: "C.UTF-8", TZ: "UTC" };
  const initdb = ["-D", data, "-U", "berth", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
  await runOk({ file: join(bin, "initdb"), args: initdb }, { env, timeoutMs: 60_000, ...owner });
  const settings = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "listen_addresses=",
    `unix_socket_directories=${folder}`,
    "max_connections=300",
    "shared_buffers=32MB",
    "autovacuum=off",
  ];
  const server = start(
    {
      file: join(bin, "postgres"),
      args: ["-D", data, "-p", "5432", ...settings.flatMap((setting) => ["-c", setting])],
    },
    { env, ...owner },
  );
  server.stdout.resume();
  server.stderr.pipe(process.stderr);
  if (!(await until(answers, { timeoutMs: 30_000 })))
    throw new Error("the test database server does not accept connections");
  return server;
}

async function answers(): Promise<true | undefined> {
  const client = new pg.Client(connection);
  client.on("error", () => {});
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return undefined;
  }
}

function announce(ready: Ready): void {
  writeFileSync(join(folder, "ready.json.new"), JSON.stringify(ready));
  renameSync(join(folder, "ready.json.new"), join(folder, "ready.json"));
}

async function whileUsed(server: { readonly exitCode: number | null }): Promise<void> {
  for (let lastUsed = Date.now(); server.exitCode === null && Date.now() - lastUsed < idleMs; await sleep(500)) {
    if (users() > 0) lastUsed = Date.now();
  }
}

/** Counts the registered processes that are alive, and removes the entries of others. */
function users(): number {
  const names = readdirSync(join(folder, "users"));
  const alive = names.filter((name) => isRegistrant(join(folder, "users", name)));
  return alive.length;
}

function isRegistrant(file: string): boolean {
  try {
    const alive = isAlive(JSON.parse(readFileSync(file, "utf8")) as ProcessIdentity);
    if (!alive) rmSync(file, { force: true });
    return alive;
  } catch {
    // The entry is being written or was just removed; counting one too many does no harm.
    return true;
  }
}
