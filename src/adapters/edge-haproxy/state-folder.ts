import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

// State that the edge keeps for its next start. Only the control plane's user can read it.

/** Replaces a file atomically. */
export function writeState(stateDir: string, name: string, text: string): void {
  const path = join(stateDir, name);
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Reads a JSON file; undefined when it is missing or unreadable. */
export function readState<T>(stateDir: string, name: string): T | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, name), "utf8")) as T;
  } catch {
    return undefined;
  }
}

/** Returns the word in this file, created once per state folder, so that a HAProxy that keeps running knows it. */
export function keptWord(path: string, make: () => string): string {
  try {
    writeFileSync(path, make(), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  return readFileSync(path, "utf8");
}

/** Returns a free port, chosen once per state folder. */
export async function keptPort(stateDir: string, name: string, host: string): Promise<number> {
  const free = await freePort(host);
  return Number(keptWord(join(stateDir, name), () => `${free}`));
}

// Between the ports of databases and those of outgoing connections, one of which could have the port whenever HAProxy starts again.
const [firstPort, portCount] = [31_000, 1768];

async function freePort(host: string): Promise<number> {
  const port = firstPort + randomInt(portCount);
  const server = createServer().listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return freePort(host);
    throw error;
  }
  await new Promise((resolve) => server.close(resolve));
  return port;
}
