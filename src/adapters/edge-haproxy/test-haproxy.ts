import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemPath } from "../../kit/exec.ts";
import { silentLog } from "../../kit/log.ts";

/** The machine's HAProxy; undefined if it is not installed. */
export const haproxyBin = findProgram("haproxy");

/** Returns options as in production: root starts HAProxy as a separate user. */
export function testOptions(bin: string) {
  const user = process.getuid?.() === 0 ? { uid: 29_301, setpriv: findProgram("setpriv") ?? null } : {};
  const listens = { listenHost: "127.0.0.1", listenPort: 0, listenTlsPort: 0 };
  return { haproxyBin: bin, ...listens, ...user, log: silentLog };
}

function findProgram(name: string): string | undefined {
  return systemPath
    .split(":")
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}
