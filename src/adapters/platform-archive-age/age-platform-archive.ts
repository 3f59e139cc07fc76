import { createWriteStream } from "node:fs";
import { copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { PoolConfig } from "pg";
import { runOk } from "../../kit/exec.ts";
import { readFolder } from "../../kit/folder-tar.ts";
import { readVersion } from "../../kit/own-version.ts";
import { readJson } from "../../kit/whole-file.ts";
import type { PackedPlatform, PlatformArchive } from "../../ports/platform-archive.ts";
import type { Repositories } from "../../ports/repositories.ts";
import { saveDatabase } from "../../postgres/whole-database.ts";

export interface AgePlatformArchiveOptions {
  /** A folder for what is being packed. Emptied before and after. */
  readonly dir: string;
  readonly connection: PoolConfig;
  readonly pgDump: string | null;
  readonly repositories: Pick<Repositories, "pack">;
  /** Files of the data folder, by their names in the archive; a missing one is left out. */
  readonly files: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string>>;
  readonly recipient: () => Promise<string>;
  /** Whether the disk has room for more. */
  readonly hasRoom: () => Promise<boolean>;
}

export interface PlatformManifest {
  readonly version: string;
  readonly commit: string | null;
  /** RFC 3339. */
  readonly taken_at: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Packs the platform into a tar archive in an age file (age-encryption.org/v1), which the programs `age` and `tar` open too. */
export function createAgePlatformArchive(options: AgePlatformArchiveOptions): PlatformArchive {
  return { pack: (projectIds, signal) => pack(options, projectIds, signal) };
}

async function pack(
  options: AgePlatformArchiveOptions,
  projectIds: readonly string[],
  signal: AbortSignal,
): Promise<PackedPlatform> {
  const { dir, connection, pgDump, repositories, files, settings } = options;
  const discard = () => rm(dir, { recursive: true, force: true });
  await discard();
  try {
    const parts = partsIn(dir);
    for (const folder of [dir, parts.files, parts.repositories]) await mkdir(folder, { mode: 0o700 });
    const taken_at = new Date();
    await saveDatabase({ connection, file: parts.database, program: pgDump }, signal);
    for (const [name, path] of Object.entries(files))
      await copyFile(path, join(parts.files, name)).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      });
    // After the database, so that every commit that it names is there.
    const left_out: string[] = [];
    for (const id of projectIds) {
      if (!(await options.hasRoom()))
        throw new Error("The disk of the data folder has no room to pack the repositories.");
      await packRepository(repositories, { id, file: bundleOf(parts, id) }, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        left_out.push(`The repository of ${id} is left out: ${(error as Error).message}`);
      });
    }
    const manifest: PlatformManifest = { ...readVersion(), taken_at: taken_at.toISOString(), settings };
    await writeFile(parts.manifest, JSON.stringify(manifest), { mode: 0o600 });
    const recipient = await options.recipient();
    const folder = readFolder(dir, signal) as Readable;
    const archive = await encrypted(folder, recipient);
    const content = Readable.from(followed(archive, discard), { objectMode: false });
    // The encryption reads ahead, also of a stream that nobody has read yet.
    content.once("close", () => folder.destroy());
    return { content, taken_at, recipient, left_out };
  } catch (error) {
    await discard();
    throw error;
  }
}

const packTimeoutMs = 30 * 60_000;

/** Writes a project's bundle, whole or not at all. */
async function packRepository(
  repositories: AgePlatformArchiveOptions["repositories"],
  { id, file }: { readonly id: string; readonly file: string },
  stop: AbortSignal,
): Promise<void> {
  const bundle = await repositories.pack(id);
  if (bundle === null) return;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(packTimeoutMs)]);
  await pipeline(bundle, createWriteStream(file, { mode: 0o600 }), { signal }).catch(async (error: unknown) => {
    await rm(file, { force: true });
    throw error;
  });
}

async function encrypted(archive: Readable, recipient: string): Promise<ReadableStream<Uint8Array>> {
  const { Encrypter } = await import("age-encryption");
  const age = new Encrypter();
  age.addRecipient(recipient);
  return age.encrypt(ReadableStream.from(archive));
}

async function* followed(content: AsyncIterable<Uint8Array>, last: () => Promise<void>): AsyncGenerator<Uint8Array> {
  try {
    yield* content;
  } finally {
    await last();
  }
}

/** Decrypts an archive and unpacks it into an empty folder. Rejects when the identity does not open it or it is damaged. */
export async function unpackPlatform(content: Readable, identity: string, dir: string): Promise<PlatformManifest> {
  const { Decrypter } = await import("age-encryption");
  const age = new Decrypter();
  age.addIdentity(identity);
  const archive = Readable.from(await age.decrypt(ReadableStream.from(content)), { objectMode: false });
  await runOk(
    { file: "tar", args: ["--extract", "--no-same-owner", "--file=-", `--directory=${dir}`] },
    { stdin: archive },
  );
  if (archive.errored) throw archive.errored;
  const manifest = readJson<PlatformManifest>(partsIn(dir).manifest);
  if (manifest === undefined) throw new Error("The file is not a backup of a platform.");
  return manifest;
}

export const partsIn = (dir: string) => ({
  manifest: join(dir, "manifest.json"),
  database: join(dir, "control.dump"),
  files: join(dir, "files"),
  repositories: join(dir, "repositories"),
});

export const bundleOf = ({ repositories }: Pick<ReturnType<typeof partsIn>, "repositories">, projectId: string) =>
  join(repositories, `${projectId}.bundle`);
