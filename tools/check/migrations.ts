import { readMigrations, type Migration } from "../../src/store/migrate.ts";
import { readMigrationSums } from "../gen/migration-sums.ts";
import { report } from "./report.ts";

// What the version before might not survive. A constraint may be dropped, to be added again in a wider form.
const contracting =
  /\bdrop (?:table|view|column|function)\b|\brename\b|\balter (?:column )?\w+ (?:set data )?type\b|\bset not null\b|\badd (?:column )?\w+(?![^,;]*\bdefault\b)[^,;]*\bnot null\b/i;

/** Finds migrations whose name or text is no longer what databases have applied, and those that the version before cannot run on. */
function findings(migrations: readonly Migration[], sums: ReadonlyMap<string, string>): string[] {
  const byName = new Map(migrations.map((migration) => [migration.name, migration]));
  const applied = [...sums].flatMap(([name, sum]) => {
    const file = byName.get(name);
    if (file?.sha256 === sum) return [];
    const what = file === undefined ? "is missing or renamed" : "was changed";
    return [
      `sql/${name} ${what} although databases have applied it: restore it (git log -- sql/${name}) and add a file. If main does not have it yet, remove its line from sql/SHA256SUMS and run npm run gen.`,
    ];
  });
  const unsafe = migrations.flatMap(({ name, kind, sql }) => {
    if (kind === "contract")
      return [
        `sql/${name}: a contracting migration comes a release after its expansion, and there is no release yet; only expand.`,
      ];
    const found = contracting.exec(sql.replaceAll(/--.*$|'[^']*'/gm, ""))?.[0];
    return found === undefined
      ? []
      : [`sql/${name}: "${found}" is no expansion: the version before must run on the schema.`];
  });
  return [...applied, ...unsafe];
}

report(findings(await readMigrations("sql"), await readMigrationSums()));
