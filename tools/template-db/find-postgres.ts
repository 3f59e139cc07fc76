import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const debian = "/usr/lib/postgresql";

/** Returns the folder of PostgreSQL's programs: Debian's newest version, else the first in PATH. Throws if there is none. */
export function findPostgres(): string {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(debian, version, "bin")),
    ...(process.env["PATH"] ?? "").split(":"),
  ];
  const found = folders.find((path) => ["initdb", "postgres"].every((program) => existsSync(join(path, program))));
  if (!found) throw new Error(`PostgreSQL is not installed: neither ${debian} nor PATH has initdb and postgres`);
  return found;
}
