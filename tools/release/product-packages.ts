export interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** The parts of `package-lock.json`, version 3, that decide what is installed. Keys are folders; "" is the package itself. */
export interface PackageLock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Returns manifest and lock file with only the packages that the sources import, and those that these need. */
export function productPackages(manifest: Manifest, lock: PackageLock, sources: readonly string[]) {
  const imported = new Set(sources.flatMap(importedPackages));
  const unknown = [...imported].filter((name) => !(name in manifest.dependencies));
  if (unknown.length > 0) throw new Error(`The product imports packages that are no dependencies: ${unknown.join()}.`);
  const dependencies = Object.fromEntries(Object.entries(manifest.dependencies).filter(([name]) => imported.has(name)));
  const needed = new Set<string>();
  const add = (from: string, name: string): void => {
    const folder = resolveFolder(lock, from, name);
    if (folder === undefined || needed.has(folder)) return;
    needed.add(folder);
    const { dependencies: own, optionalDependencies, peerDependencies } = lock.packages[folder] ?? {};
    for (const next of Object.keys({ ...own, ...optionalDependencies, ...peerDependencies })) add(folder, next);
  };
  for (const name of Object.keys(dependencies)) add("", name);
  const { devDependencies: _, scripts: __, ...kept } = manifest as Manifest & Record<string, unknown>;
  const { devDependencies: ___, ...root } = lock.packages[""] as Record<string, unknown>;
  const packages = Object.fromEntries(Object.entries(lock.packages).filter(([folder]) => needed.has(folder)));
  return {
    manifest: { ...kept, dependencies },
    lock: { ...lock, packages: { "": { ...root, dependencies }, ...packages } },
  };
}

function importedPackages(source: string): readonly string[] {
  const names = source.matchAll(
    /^(?:import|export)\s(?:[\w\s{},*$]+\bfrom )?"([^".][^"]*)"|\bimport\("([^".][^"]*)"\)/gm,
  );
  return [...names]
    .map(([, name = "", dynamic = name]) => dynamic)
    .filter((name) => !name.startsWith("node:"))
    .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
}

/** Returns the folder in which Node.js finds the package, or undefined if npm did not lock it. */
function resolveFolder({ packages }: PackageLock, from: string, name: string): string | undefined {
  const folder = `${from === "" ? "" : `${from}/`}node_modules/${name}`;
  if (folder in packages) return folder;
  return from === ""
    ? undefined
    : resolveFolder({ packages }, from.replace(/(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, ""), name);
}
