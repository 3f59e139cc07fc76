import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { startDetached, systemPath } from "../../src/kit/exec.ts";
import { identify, isAlive, type ProcessIdentity } from "../../src/kit/processes.ts";
import { until } from "../../src/kit/until.ts";
import { serversFolder } from "./servers-folder.ts";

const keeper = fileURLToPath(new URL("keeper.ts", import.meta.url));

/**
 * Returns the PostgreSQL server that all test files of a run share. The first file starts it; it ends by itself (see `keeper.ts`) a few
 * seconds after the last process that uses it. Resolves with a connection that may create databases.
 */
export async function sharedServer(): Promise<pg.ClientConfig> {
  const folder = sharedFolder();
  const found = await until(
    async () => {
      if (!register(folder)) return undefined;
      const ready = readReady(folder);
      if (ready) return ready;
      if (lock(folder)) await startKeeper(folder);
      return undefined;
    },
    { timeoutMs: 90_000, firstMs: 50 },
  );
  if (!found) throw new Error(`the test database server did not start; see ${join(folder, "keeper.log")}`);
  return found;
}

/** What the keeper writes when the server accepts connections. */
export interface Ready {
  readonly connection: pg.ClientConfig;
  readonly keeper: ProcessIdentity;
}

/** Returns the folder of this user's and checkout's server. It is short, because a socket's path may have only 107 bytes. */
function sharedFolder(): string {
  const checkout = createHash("sha256").update(keeper).digest("hex").slice(0, 8);
  return join(serversFolder(), `berth-pg-${userInfo().uid}-${checkout}`);
}

/** Returns false if the keeper has removed the folder meanwhile. */
function register(folder: string): boolean {
  const me = identify(process.pid);
  mkdirSync(join(folder, "users"), { recursive: true, mode: 0o755 });
  try {
    writeFileSync(join(folder, "users", String(process.pid)), JSON.stringify(me));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function readReady(folder: string): pg.ClientConfig | undefined {
  const ready = readJson<Ready>(join(folder, "ready.json"));
  return ready && isAlive(ready.keeper) ? ready.connection : undefined;
}

/** Returns whether this process must start the keeper. Breaks a lock whose owner has died. */
function lock(folder: string): boolean {
  const file = join(folder, "lock");
  try {
    writeFileSync(file, JSON.stringify(identify(process.pid)), { flag: "wx" });
    return true;
  } catch {
    const owner = readJson<ProcessIdentity>(file);
    if (owner && !isAlive(owner)) rmSync(file, { force: true });
    return false;
  }
}

// The keeper takes over the lock, so that the lock lasts as long as the server.
async function startKeeper(folder: string): Promise<void> {
  const command = { file: process.execPath, args: [keeper, folder] };
  const pid = await startDetached(command, join(folder, "keeper.log"), {
    env: { PATH: process.env["PATH"] ?? systemPath },
  });
  writeFileSync(join(folder, "lock"), JSON.stringify(identify(pid)));
}

function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    return undefined;
  }
}
