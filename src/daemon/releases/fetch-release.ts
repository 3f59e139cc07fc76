import { createHash, verify } from "node:crypto";
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, statfs, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import { compare, lt, valid } from "semver";
import { extract } from "tar";
import { onDiskOf } from "../../kit/disk-fault.ts";
import { runOk } from "../../kit/exec.ts";
import { ownFolder, readVersion } from "../../kit/own-version.ts";
import { readJson, replaceFile } from "../../kit/whole-file.ts";
import { installedVersions, type Installation } from "./installation.ts";

/** A release as its signed list names it. */
interface Listed {
  readonly version: string;
  readonly archive: string;
  readonly sha256: string;
}

// What a version takes unpacked, and its archive.
const neededBytes = 400 * 1024 * 1024;
const listTimeoutMs = 30_000;
const archiveTimeoutMs = 30 * 60_000;

/** Where releases come from. */
interface Origin {
  /** BERTH_RELEASE_URL. */
  readonly standard: string | null;
  /** A file with the newest version that each place has named so far. */
  readonly seen: string;
  /** The public key that signs them; default: the running version's. */
  readonly keyFile?: string;
}

/**
 * Installs a release beside the others and returns its version. `source` is a version that is installed or at the standard place, the
 * address or folder of a release, an archive beside its signed list, or null for the newest at the standard place. Idempotent, and complete
 * on the disk before the version has its name.
 */
export async function fetchRelease(
  installation: Installation,
  source: string | null,
  { standard, ...origin }: Origin,
): Promise<string> {
  // The way back must not depend on what still serves releases.
  if (source !== null && installedVersions(installation).includes(source)) return source;
  const { place, named } = placeOf(source, standard);
  const listed = await (named.version === undefined
    ? newestUnlessOld(place, origin)
    : newestRelease(place, origin, named.version));
  const isNamed = named.archive === undefined || listed?.archive === named.archive;
  if (listed === undefined || !isNamed)
    throw new Error(`${place} has no release ${named.version ?? ""} for this machine.`);
  const target = join(installation.versions, listed.version);
  const installed = await readFile(join(target, ".sha256"), "utf8").catch(() => "");
  if (installed.trim() === listed.sha256) return listed.version;
  if (existsSync(target)) throw new Error(`${target} holds another build of ${listed.version}.`);
  // One upgrade runs at a time, so this is what an interrupted one left.
  const scratch = join(installation.versions, ".install.upgrade");
  await rm(scratch, { recursive: true, force: true });
  const { bavail, bsize } = await statfs(installation.versions);
  if (bavail * bsize < neededBytes) throw new Error(`The disk of ${installation.versions} has less than 400 MiB free.`);
  try {
    await onDiskOf(installation.versions, async () => {
      await mkdir(scratch, { mode: 0o700 });
      await unpack(await download(place, listed, scratch), listed, scratch);
    });
    await writeFile(join(scratch, "tree/.sha256"), `${listed.sha256}\n`);
    await runOk({ file: "sync", args: ["--file-system", join(scratch, "tree")] }, { timeoutMs: archiveTimeoutMs });
    await rename(join(scratch, "tree"), target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return listed.version;
}

/** Returns the newest release for this machine at a place, if any. Throws unless its list is signed with the running version's key. */
async function newestRelease(
  place: string,
  { keyFile = join(ownFolder, "release-key.pem") }: Pick<Origin, "keyFile">,
  named?: string,
): Promise<Listed | undefined> {
  const sums = await read(place, "SHA256SUMS");
  const key = await readFile(keyFile);
  if (!verify(null, sums, key, await read(place, "SHA256SUMS.sig")))
    throw new Error(`SHA256SUMS of ${place} is not signed with the key of the installed version.`);
  const lines = sums.toString().matchAll(/^([0-9a-f]{64}) {2}(berth-([0-9][\w.+-]*)-linux-(x64|arm64)\.tar\.zst)$/gm);
  return [...lines]
    .map(([, sha256 = "", archive = "", version = "", arch]) => ({ sha256, archive, version, arch }))
    .filter(({ version, arch }) => arch === process.arch && valid(version) !== null && version === (named ?? version))
    .toSorted((one, other) => compare(one.version, other.version))
    .at(-1);
}

/**
 * Like `newestRelease`, and throws for a list that ends before the running version, or before one that the place has named earlier. A
 * signature stays valid for ever, so whoever serves releases could present an old list, whose versions have known faults.
 */
export async function newestUnlessOld(
  place: string,
  { seen, ...signed }: Omit<Origin, "standard">,
): Promise<Listed | undefined> {
  const newest = await newestRelease(place, signed);
  if (newest === undefined) return undefined;
  const known = readJson<Readonly<Record<string, string>>>(seen) ?? {};
  const { version } = newest;
  const running = readVersion().version;
  const named = known[place];
  if (named !== undefined && lt(version, named))
    throw new Error(
      `The releases at ${place} end with ${version}, although ${named} was there before: the list is an old one, or ${named} was withdrawn. Name the version, or its archive, to install it nevertheless.`,
    );
  if (lt(version, running))
    throw new Error(
      `The releases at ${place} end with ${version}, which is older than ${running}, the version that runs. Name the version, or its archive, to go back to it.`,
    );
  if (version !== named) {
    await mkdir(dirname(seen), { recursive: true, mode: 0o700 });
    replaceFile(seen, JSON.stringify({ ...known, [place]: version }), { flush: true });
  }
  return newest;
}

function placeOf(source: string | null, standard: string | null) {
  const isVersion = source !== null && valid(source) !== null;
  if (source === null || isVersion) {
    if (standard === null)
      throw new Error("Name a release: the address of its folder, or its archive. BERTH_RELEASE_URL is not set.");
    return { place: standard, named: isVersion ? { version: source } : {} };
  }
  if (!source.endsWith(".tar.zst")) return { place: source, named: {} };
  const archive = basename(source);
  return {
    place: dirname(source),
    named: { archive, version: /^berth-(.+)-linux-\w+\.tar\.zst$/.exec(archive)?.[1] ?? "" },
  };
}

const isAddress = (place: string) => /^https?:\/\//.test(place);

async function read(place: string, name: string): Promise<Buffer> {
  if (!isAddress(place)) return readFile(join(place, name));
  return Buffer.from(await (await get(place, name, listTimeoutMs)).arrayBuffer());
}

async function get(place: string, name: string, timeoutMs: number): Promise<Response> {
  const response = await fetch(`${place.replace(/\/$/, "")}/${name}`, { signal: AbortSignal.timeout(timeoutMs) });
  if (!response.ok) throw new Error(`${place} answered ${response.status} for ${name}.`);
  return response;
}

async function download(place: string, { archive }: Listed, scratch: string): Promise<string> {
  if (!isAddress(place)) return join(place, archive);
  const file = join(scratch, archive);
  const { body } = await get(place, archive, archiveTimeoutMs);
  if (body === null) throw new Error(`${place} sent nothing for ${archive}.`);
  await pipeline(Readable.fromWeb(body), createWriteStream(file));
  return file;
}

// The digest is that of the bytes that are unpacked, so the file may change meanwhile.
async function unpack(file: string, { sha256, archive }: Listed, scratch: string): Promise<void> {
  const hash = createHash("sha256");
  const hashed = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  const cwd = join(scratch, "tree");
  await mkdir(cwd);
  const faults: Error[] = [];
  // The library goes on with the next file when one cannot be written.
  const onwarn = (_code: string, _text: string, fault: unknown) => void (fault instanceof Error && faults.push(fault));
  await pipeline(createReadStream(file), hashed, createZstdDecompress(), extract({ cwd, strip: 1, onwarn }));
  for (const fault of faults) throw fault;
  if (hash.digest("hex") !== sha256) throw new Error(`${archive} does not have the checksum that SHA256SUMS names.`);
  // Whatever this process's umask is, users of applications read these files.
  await runOk({ file: "chmod", args: ["--recursive", "go=u-w", cwd] });
}
