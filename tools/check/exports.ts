import { readFileSync } from "node:fs";
import { basename } from "node:path";

import { exceptions, withoutExceptions } from "./exceptions.ts";
import { report } from "./report.ts";
import { readModule, type SourceModule } from "./source-module.ts";
import { trackedFiles } from "./tracked-files.ts";

/**
 * Finds exports that nothing uses. A type is used when its own file uses it in what it exports. What of the rules and the reconcilers
 * only a test calls is a function that the product never runs.
 */
export function unusedExports(modules: readonly SourceModule[]): ReadonlyMap<string, string> {
  const takenByAll = takenFrom(modules);
  const takenByProduct = takenFrom(modules.filter(({ file }) => !isTest(file)));
  const findings = new Map<string, string>();
  for (const module of modules.filter((each) => each.file.startsWith("src/"))) {
    const takes = (by: typeof takenByAll, name: string) => ["*", name].some((each) => by.get(module.file)?.has(each));
    for (const each of module.exports) {
      const where = `${module.file}:${each.line}`;
      const isNamedInside = module.text.split(new RegExp(`\\b${each.name}\\b`)).length > 2;
      const key = `${module.file}#${each.name}`;
      if (each.isType && isNamedInside) continue;
      if (!takes(takenByAll, each.name))
        findings.set(key, `${where}: nothing imports ${each.name}: drop the export or the code`);
      else if (isRule(module.file) && !isNamedInside && !takes(takenByProduct, each.name))
        findings.set(key, `${where}: only tests use ${each.name}: drop it`);
    }
  }
  return findings;
}

function isRule(file: string): boolean {
  return /^src\/(?:features|reconcile)\//.test(file) && !isTest(file);
}

function isTest(file: string): boolean {
  return /^(?:test|tools)\/|\.(?:test|suite)\.ts$|-fixture\.ts$|\/test-[^/]+\.ts$/.test(file);
}

/** The names that these modules import, by the file they come from. */
function takenFrom(modules: readonly SourceModule[]): ReadonlyMap<string, ReadonlySet<string>> {
  const taken = new Map<string, Set<string>>();
  for (const { from, names } of modules.flatMap((module) => module.imports)) {
    const known = taken.get(from) ?? new Set();
    for (const name of names) known.add(name);
    taken.set(from, known);
  }
  return taken;
}

/** Files that nothing imports, names as a path or runs as a test. */
export function unusedFiles(modules: readonly SourceModule[]): readonly string[] {
  const imported = new Set(modules.flatMap((module) => module.imports.map(({ from }) => from)));
  const named = new Set(modules.flatMap((module) => module.strings.map((text) => basename(text))));
  const isEntry = (file: string) => /(?:^|\/)main\.tsx?$|\.test\.ts$/.test(file);
  const unused = modules.filter(({ file }) => file.startsWith("src/") && !isEntry(file) && !imported.has(file));
  return unused.filter(({ file }) => !named.has(basename(file))).map(({ file }) => `${file}: nothing uses this file`);
}

/** Packages in package.json that no file imports, and packages that only tests import but that are installed for everybody. */
export function unusedPackages(modules: readonly SourceModule[], manifest: Manifest): ReadonlyMap<string, string> {
  const findings = new Map<string, string>();
  const imported = (name: string, within: (file: string) => boolean) =>
    modules.some(
      ({ file, imports }) => within(file) && imports.some(({ from }) => from === name || from.startsWith(`${name}/`)),
    );
  for (const name of Object.keys(manifest.dependencies)) {
    if (imported(name, (file) => file.startsWith("src/") && !file.endsWith(".test.ts"))) continue;
    findings.set(name, `package.json: src does not import ${name}: remove it or move it to devDependencies`);
  }
  for (const name of Object.keys(manifest.devDependencies)) {
    if (name.startsWith("@types/") || imported(name, () => true)) continue;
    findings.set(name, `package.json: nothing imports ${name}: remove it`);
  }
  return findings;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

async function findAll(): Promise<readonly string[]> {
  const files = (await trackedFiles(["src", "test", "tools"])).filter((file) => /\.(?:ts|tsx|mjs)$/.test(file));
  const modules = files.map(readModule);
  const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
  return [
    ...withoutExceptions(unusedExports(modules), exceptions.exports),
    ...unusedFiles(modules),
    ...withoutExceptions(unusedPackages(modules, manifest), exceptions.packages),
  ];
}

if (import.meta.main) report(await findAll());
