import { glob, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runOk, type RunOptions } from "../../src/kit/exec.ts";
import { readConfig } from "../../src/daemon/config.ts";

const checkout = resolve(import.meta.dirname, "../..");
const { toolEnvironment } = readConfig();

/** The processors that releases are made for, with what `uname` calls a machine that has one. */
export const platforms = { x64: "Linux-x86_64", arm64: "Linux-aarch64" } as const;

export interface Staged {
  readonly version: string;
  /** The commit's time in milliseconds since 1970. */
  readonly timeMs: number;
}

/**
 * Writes what a release contains into `folder`, which must not exist: the files of the newest commit without tests, the packages that they
 * import, Node.js, npm, and the bundled dashboard. Fetches packages unless npm's cache holds them.
 */
export async function stageRelease(
  folder: string,
  { arch, publicKey }: { readonly arch: keyof typeof platforms; readonly publicKey: string },
): Promise<Staged> {
  const { stdout } = await tool("git", ["log", "-1", "--format=%H %ct"], checkout);
  const [commit = "", seconds = ""] = stdout.trim().split(" ");
  await mkdir(folder, { recursive: true });
  await tool("git", ["archive", "--output", `${folder}.tar`, commit], checkout);
  await tool("tar", ["-xf", `${folder}.tar`, "-C", folder], checkout);
  await rm(`${folder}.tar`);
  await bundleDashboard(folder);
  await removeDevelopment(folder);
  const { version } = await installPackages(folder);
  await tool(join(checkout, "tools/release/toolchain"), [join(folder, ".toolchain"), platforms[arch]], folder);
  await writeFile(join(folder, "release.json"), `${JSON.stringify({ version, commit })}\n`);
  await writeFile(join(folder, "release-key.pem"), publicKey);
  return { version, timeMs: Number(seconds) * 1000 };
}

function tool(file: string, args: readonly string[], cwd: string, options: RunOptions = {}) {
  return runOk({ file, args }, { cwd, env: toolEnvironment, ...options });
}

async function bundleDashboard(folder: string): Promise<void> {
  await symlink(join(checkout, "node_modules"), join(folder, "node_modules"));
  const env = { ...toolEnvironment, NODE_ENV: "production" };
  await tool(process.execPath, ["src/bundler/main.ts", "build", join(folder, "dashboard")], folder, { env });
  await rm(join(folder, "node_modules"));
}

const development = [
  ...["test", "tools/!(setup)", "tools/setup/!(prepare.sh)", ".*", "tsconfig.json"],
  ...["src/{dashboard,bundler}", "src/**/*.{test,suite}.ts", "src/**/test-*.ts", "src/**/tsconfig.json"],
];

async function removeDevelopment(folder: string): Promise<void> {
  for (const path of await Array.fromAsync(glob(development, { cwd: folder })))
    await rm(join(folder, path), { recursive: true, force: true });
}

/** Installs the packages that the remaining files import, and returns the release's own manifest. */
async function installPackages(folder: string): Promise<Manifest> {
  const [manifestFile, lockFile] = [join(folder, "package.json"), join(folder, "package-lock.json")];
  const sources = await Array.fromAsync(glob("src/**/*.{ts,mjs}", { cwd: folder }));
  const texts = await Promise.all(sources.map((path) => readFile(join(folder, path), "utf8")));
  const read = async <T>(file: string) => JSON.parse(await readFile(file, "utf8")) as T;
  const kept = productPackages(await read<Manifest>(manifestFile), await read<PackageLock>(lockFile), texts);
  const lock = `${JSON.stringify(kept.lock, null, 2)}\n`;
  await writeFile(manifestFile, `${JSON.stringify(kept.manifest, null, 2)}\n`);
  await writeFile(lockFile, lock);
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  await tool("npm", ["ci", "--omit=dev", "--omit=optional", "--ignore-scripts", ...quiet], folder);
  // The starters compare this with the lock file, and then leave the packages alone.
  const { stdout } = await tool("cksum", [], folder, { stdin: lock });
  await writeFile(join(folder, "node_modules/.berth-stamp"), stdout);
  return kept.manifest;
}

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** The parts of `package-lock.json`, version 3, that decide what is installed. Keys are folders; "" is the package itself. */
interface PackageLock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Returns manifest and lock file with only the packages that the sources import, and those that these need. */
function productPackages(manifest: Manifest, lock: PackageLock, sources: readonly string[]) {
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
