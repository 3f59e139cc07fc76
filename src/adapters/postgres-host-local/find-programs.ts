import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const needed = ["initdb", "postgres", "pg_dump", "pg_restore"];
const oldestMajor = 15;
const distributionFolder = "/usr/lib/postgresql";

/** The folder of the newest PostgreSQL (15 or later) of this machine that has server and clients; undefined when there is none. */
export function findPrograms(folder = distributionFolder): string | undefined {
  if (!existsSync(folder)) return undefined;
  const majors = readdirSync(folder).map(Number).filter((major) => major >= oldestMajor);
  return majors
    .sort((a, b) => b - a)
    .map((major) => join(folder, String(major), "bin"))
    .find((bin) => needed.every((program) => existsSync(join(bin, program))));
}
