import { basename } from "node:path";
import { readFileSync } from "node:fs";
import { parseSync } from "oxc-parser";
import { exceptions, withoutExceptions } from "./exceptions.ts";
import { report } from "./report.ts";
import { trackedFiles } from "./tracked-files.ts";

/** Words that say nothing: the thing has a better name. `Data` is refused only where it is a mere ending. */
const emptyWords = new Set(["manager", "helper", "helpers", "util", "utils", "service", "services", "base", "info"]);
const emptyEndings = new Set(["data"]);
const termsOfArt = ["package-manager"];

/** Files that are named after their place in the layout instead of their main export. */
const placed = new Set([
  "main",
  "rules",
  "queries",
  "handlers",
  "commands",
  "routes",
  "table",
  "errors",
  "config",
  "wire",
]);

/** Finds file names and exported names that break the rules of style. */
export function refusedNames(modules: readonly SourceModule[]): ReadonlyMap<string, string> {
  const findings = new Map<string, string>();
  for (const module of modules) {
    const fileFault = faultOfFile(module.file) ?? faultOfFirstExport(module);
    if (fileFault) findings.set(module.file, `${module.file}: ${fileFault}`);
    for (const { name, line, isType } of module.exports) {
      const word = emptyWord(words(name), isType);
      if (word)
        findings.set(`${module.file}#${name}`, `${module.file}:${line}: ${name} says "${word}": name what it is`);
    }
  }
  return findings;
}

function faultOfFile(file: string): string | null {
  const name = basename(file).replace(/\.(?:test|suite)?\.?(?:tsx?|mjs)$/, "");
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) return "file names are kebab-case";
  const word = emptyWord(name.split("-"));
  return word ? `the name says "${word}": name it after what it holds` : null;
}

/**
 * `find-postgres.ts` exports `findPostgres` before other functions and values; types may precede it. A file of several equal
 * functions may have a topic for its name; a file of one function has that function's name.
 */
function faultOfFirstExport(module: SourceModule): string | null {
  if (isNamedByPlace(module.file)) return null;
  const values = module.exports.filter(({ isType }) => !isType);
  const name = basename(module.file).replace(/\.tsx?$|\.mjs$/, "");
  const main = values.findIndex((each) => isNamedAfter(name, each.name));
  if (main > 0) return `${values[main]?.name} is the main export: put it before ${values[0]?.name}`;
  if (main === 0 || module.exports.some((each) => isNamedAfter(name, each.name))) return null;
  if (values.length !== 1) return null;
  return `it exports ${values[0]?.name}: name the file after it`;
}

function isNamedAfter(file: string, exported: string): boolean {
  const all = words(exported).join("-");
  return all === file || file.split("-").every((word) => all.includes(word.replace(/(?:ies|es|s|y|e)$/, "")));
}

function isNamedByPlace(file: string): boolean {
  if (/\.(?:test|suite)\.ts$|^test\/|^tools\//.test(file)) return true;
  if (/^src\/(?:contract|cli\/commands|reconcile\/tasks)\/[^/]+\.ts$/.test(file)) return true;
  const [, feature, name] = /^src\/features\/([^/]+)\/([^/]+)\.ts$/.exec(file) ?? [];
  return (feature !== undefined && feature === name) || placed.has(basename(file).replace(/\.tsx?$/, ""));
}

function words(name: string): string[] {
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");
  return spaced.split(/[ _]/).map((word) => word.toLowerCase());
}

function emptyWord(parts: readonly string[], isThing = false): string | null {
  const ending = isThing && parts.length > 1 ? (parts.at(-1) ?? "") : "";
  const isTermOfArt = termsOfArt.some((term) => parts.join("-").includes(term));
  return parts.find((part) => emptyWords.has(part) && !isTermOfArt) ?? (emptyEndings.has(ending) ? ending : null);
}

async function findAll(): Promise<readonly string[]> {
  const files = (await trackedFiles(["src", "test", "tools"])).filter((file) => /\.(?:ts|tsx|mjs)$/.test(file));
  return withoutExceptions(refusedNames(files.map(readModule)), exceptions.names);
}

if (import.meta.main) report(await findAll());

interface SourceModule {
  readonly file: string;
  readonly exports: readonly ExportedName[];
}

interface ExportedName {
  readonly name: string;
  readonly isType: boolean;
  readonly line: number;
}

/** Reads one TypeScript or JavaScript file, named relative to the current folder. */
function readModule(file: string): SourceModule {
  const text = readFileSync(file, "utf8");
  const entries = parseSync(file, text).module.staticExports.flatMap((statement) => statement.entries);
  const exports = entries.flatMap(({ exportName: { name }, isType, start }) =>
    name === null ? [] : [{ name, isType, line: text.slice(0, start).split("\n").length }],
  );
  return { file, exports };
}
