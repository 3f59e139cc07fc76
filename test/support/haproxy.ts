import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemPath } from "../../src/kit/exec.ts";
import { silentLog } from "../../src/kit/log.ts";

const haproxyBin = findProgram("haproxy");
const user = process.getuid?.() === 0 ? { uid: 29_301, setpriv: findProgram("setpriv") ?? null } : {};

/** Why tests with HAProxy are skipped; false where they run. */
export const withoutHaproxy = haproxyBin === undefined ? "haproxy is not installed" : false;

/** Options as in production: root starts HAProxy as a separate user. */
export const testOptions = {
  ...{ haproxyBin: haproxyBin ?? "haproxy", log: silentLog, ...user },
  ...{ listenHost: "127.0.0.1", listenPort: 0, listenTlsPort: 0 },
};

function findProgram(name: string): string | undefined {
  return systemPath
    .split(":")
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}
