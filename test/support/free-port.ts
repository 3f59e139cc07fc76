import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatIdentity, isKnownDead, ownIdentity } from "../../src/kit/processes.ts";

// Outside the ranges for outgoing connections, for databases and for sandboxes.
const [first, count] = [5500, 2400];
// fetch and browsers block these ports (https://fetch.spec.whatwg.org/#port-blocking).
const refused = new Set([6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697]);
const claims = join(tmpdir(), "berth-test-ports");

/** Returns a free port that no other test process receives while this one lives. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * count);
    if (!refused.has(port) && claim(port) && (await isFree(port))) return port;
  }
}

/** Reserves a port, because until the test listens on it another test would find it free. */
function claim(port: number): boolean {
  mkdirSync(claims, { recursive: true });
  const file = join(claims, `${port}`);
  try {
    writeFileSync(file, formatIdentity(ownIdentity()), { flag: "wx" });
    return true;
  } catch {
    if (isKnownDead(ownerOf(file))) rmSync(file, { force: true });
    return false;
  }
}

/** Returns an empty text when another process has just removed the file. */
function ownerOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
