import { readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import semver from "semver";
import { BuildRefused } from "../../../detection/failures.ts";
import { chooseNodeVersion, type NodeWish } from "../../../detection/node-version.ts";
import type { PackageManager } from "../../../detection/package-manager.ts";
import {
  adoptPackage,
  adoptProgram,
  fetchPackage,
  keptVersions,
  PackageUnavailable,
  publishedVersions,
} from "./npm-packages.ts";
import type { FetchedPackage, NpmPackagesOptions } from "./npm-packages.ts";

export interface Toolchain {
  readonly name: string;
  readonly version: string;
  /** The folder on this machine; it is mounted read-only at `target`. */
  readonly source: string;
  readonly target: string;
}

const npmPackages: Readonly<Record<PackageManager["name"], string>> = {
  npm: "npm",
  pnpm: "pnpm",
  yarn: "yarn",
  "yarn-modern": "@yarnpkg/cli-dist",
  // The packages with the binaries are named by platform and processor; the package `bun` only chooses among them.
  bun: `@oven/bun-${process.platform}-${process.arch === "arm64" ? "aarch64" : process.arch}`,
};
const denoPackage = `@deno/${process.platform}-${process.arch}-glibc`;
// npm's packages of the binaries from https://nodejs.org/dist are named by platform and processor.
const nodePackage = `node-${process.platform}-${process.arch}`;

/** Returns the Node for a release: the platform's own if it fits, else a fetched one. Throws `BuildRefused`. */
export async function nodeToolchain(options: NpmPackagesOptions, wish: NodeWish | null): Promise<Toolchain> {
  const own = process.version.slice(1);
  const version = wish === null || semver.satisfies(own, wish.range) ? own : await chooseVersion(options, wish, own);
  const found =
    version === own ? await adoptProgram(options, "node", own, options.nodeBin) : await fetchNode(options, version);
  return toolchain("node", found);
}

async function chooseVersion(options: NpmPackagesOptions, wish: NodeWish, own: string): Promise<string> {
  const known = await publishedVersions(options, nodePackage).catch((error: unknown) => error as Error);
  if (!(known instanceof Error)) {
    const version = chooseNodeVersion(wish.range, own, known);
    if (version !== null) return version;
    throw new BuildRefused("node_version_unavailable", { summary: `No Node.js release fits ${wish.from}.` });
  }
  const version = chooseNodeVersion(wish.range, own, await keptVersions(options, "node"));
  if (version !== null) return version;
  throw new BuildRefused("registry_unreachable", {
    stage: "detect",
    summary: `Node.js ${wish.from} must be fetched, and the registry did not answer: ${known.message}`,
  });
}

async function fetchNode(options: NpmPackagesOptions, version: string): Promise<FetchedPackage> {
  const here = join(options.folder, "node", version);
  if (await stat(here).catch(() => null)) return { version, folder: here };
  try {
    const fetched = await fetchPackage(options, nodePackage, version, ["bin/node", includes]);
    return await adoptProgram(options, "node", version, join(fetched.folder, "bin", "node"));
  } catch (cause) {
    if (!(cause instanceof PackageUnavailable)) throw cause;
    throw new BuildRefused("registry_unreachable", {
      stage: "detect",
      summary: `Node.js ${version} could not be fetched: ${cause.message}`,
    });
  }
}

const includes = "include/node";

/** Returns the headers of this Node for packages with native code; null if neither its package nor the folder of the platform's own has them. */
export async function nodeHeaders(options: NpmPackagesOptions, { version }: Toolchain): Promise<Toolchain | null> {
  const isOwn = version === process.version.slice(1);
  const prefix = isOwn ? dirname(dirname(options.nodeBin)) : join(options.folder, nodePackage, version, "package");
  const source = join(prefix, includes);
  // The headers beside a program of the machine may be those of another package.
  const text = await readFile(join(source, "node_version.h"), "utf8").catch(() => "");
  const [, major] = /NODE_MAJOR_VERSION (\d+)/.exec(text) ?? [];
  return major !== version.split(".")[0]
    ? null
    : { name: "node-headers", version: "", source, target: `${headersHome}/${includes}` };
}

/** The folder that node-gyp calls `nodedir`. */
export const headersHome = "/opt/node-headers";

/** Returns the application's package manager for the given Node. Throws `BuildRefused` with `package_manager_unavailable`. */
export async function packageManagerToolchain(
  options: NpmPackagesOptions,
  manager: PackageManager,
  nodeVersion: string,
): Promise<Toolchain> {
  const target = manager.name === "yarn-modern" ? "yarn" : manager.name;
  try {
    const own = manager.name === "npm" ? await ownNpm(options, manager.version, nodeVersion) : null;
    return toolchain(target, own ?? (await fetchManager(options, manager, nodeVersion)));
  } catch (cause) {
    if (!(cause instanceof PackageUnavailable)) throw cause;
    throw new BuildRefused("package_manager_unavailable", {
      summary: `${target} ${manager.version ?? ""} could not be fetched: ${cause.message}`,
    });
  }
}

/** Returns the machine's npm if it runs on this Node and no other version is requested, else null. */
async function ownNpm(
  options: NpmPackagesOptions,
  wished: string | null,
  nodeVersion: string,
): Promise<FetchedPackage | null> {
  const text = await readFile(join(options.npmDir, "package.json"), "utf8");
  const { version, engines } = JSON.parse(text) as { version: string; engines?: { node?: string } };
  const fits = semver.satisfies(nodeVersion, engines?.node ?? "*") && (wished === null || wished === version);
  // Distributions split npm's dependencies off; such a folder does not work anywhere else.
  const isWhole = (await stat(join(options.npmDir, "node_modules", "@npmcli", "arborist")).catch(() => null)) !== null;
  return fits && isWhole ? adoptPackage(options, "npm", version, options.npmDir) : null;
}

async function fetchManager(
  options: NpmPackagesOptions,
  manager: PackageManager,
  nodeVersion: string,
): Promise<FetchedPackage> {
  const name = npmPackages[manager.name];
  const version = await newestOf(options, name, manager.version ?? npmRangeFor(nodeVersion));
  return manager.name === "bun"
    ? fetchProgram(options, name, version, "bin/bun")
    : fetchPackage(options, name, version);
}

async function newestOf(options: NpmPackagesOptions, name: string, range: string): Promise<string> {
  if (semver.valid(range)) return range;
  const known = await publishedVersions(options, name).catch(() => keptVersions(options, name));
  const version = semver.maxSatisfying([...known], range);
  if (version === null) throw new PackageUnavailable(`no version fits ${range}`);
  return version;
}

/** Fetches a package that is a single program; `path` is its path in the package. */
async function fetchProgram(
  options: NpmPackagesOptions,
  name: string,
  version: string,
  path: string,
): Promise<FetchedPackage> {
  const { folder } = await fetchPackage(options, name, version);
  return adoptProgram(options, basename(path), version, join(folder, "package", path));
}

/** Returns the Deno for a release. Throws `BuildRefused` with `deno_unavailable`. */
export async function denoToolchain(options: NpmPackagesOptions, wish: string): Promise<Toolchain> {
  try {
    const version = await newestOf(options, denoPackage, wish);
    return toolchain("deno", await fetchProgram(options, denoPackage, version, "deno"));
  } catch (cause) {
    if (!(cause instanceof PackageUnavailable)) throw cause;
    throw new BuildRefused("deno_unavailable", { summary: `Deno ${wish} could not be fetched: ${cause.message}` });
  }
}

/** Returns the major version of the newest npm whose `engines` allow this Node. */
function npmRangeFor(nodeVersion: string): string {
  if (semver.satisfies(nodeVersion, "^20.17.0 || >=22.9.0")) return "11";
  if (semver.satisfies(nodeVersion, "^18.17.0 || >=20.5.0")) return "10";
  if (semver.satisfies(nodeVersion, "^14.17.0 || ^16.13.0 || >=18.0.0")) return "9";
  return "6";
}

function toolchain(name: string, found: FetchedPackage): Toolchain {
  return { name, version: found.version, source: found.folder, target: `/opt/${name}` };
}
