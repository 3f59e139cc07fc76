import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { create } from "tar";
import { keptByBerthignore, walkSource, type SourceFolder } from "../contract/source-rules.ts";
import { run } from "../kit/exec.ts";
import type { Environment } from "./environment.ts";
import { usageError } from "./failures.ts";

const listTimeoutMs = 60_000;

/** Returns a folder's source files: those that git lists in a repository, else all but those in .gitignore; without those in .berthignore. */
export async function sourceFiles(environment: Environment, folder: string): Promise<readonly string[]> {
  const found = await lstat(folder).catch(() => undefined);
  if (found?.isDirectory() !== true) throw usageError(`There is no folder ${folder}.`);
  const listed = (await listedByGit(environment, folder)) ?? (await walkSource(onDisk(folder)));
  const kept = keptByBerthignore(listed, await textOf(join(folder, ".berthignore")));
  const present = await Promise.all(kept.map((path) => isFileOrLink(join(folder, path))));
  const files = kept.filter((_, index) => present[index]);
  if (files.length > 0) return files;
  throw usageError(`${folder} holds no file to deploy.`, "Are all of them named in .gitignore or .berthignore?");
}

/** Creates a gzip tar archive of these files, generated while it is read. */
export function archiveOf(folder: string, files: readonly string[]): ReadableStream<Uint8Array> {
  // Prefixed with `./`, because a name that begins with @ would be read as another archive.
  const pack = create(
    { cwd: folder, gzip: true, portable: true, noDirRecurse: true },
    files.map((path) => `./${path}`),
  );
  return Readable.toWeb(Readable.from(pack)) as ReadableStream<Uint8Array>;
}

// Resolves to undefined outside a repository or without git.
async function listedByGit({ childEnvironment: env }: Environment, cwd: string): Promise<string[] | undefined> {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  try {
    const most = 256 * 1024 * 1024;
    const options = { cwd, env, timeoutMs: listTimeoutMs, maxOutputBytes: most };
    const ended = await run({ file: "git", args }, options);
    return ended.exitCode === 0 ? ended.stdout.split("\0").filter((path) => path !== "") : undefined;
  } catch {
    return undefined;
  }
}

function onDisk(folder: string): SourceFolder {
  return {
    async list(inside) {
      const entries = await readdir(join(folder, inside), { withFileTypes: true });
      return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
    },
    text: (path) => textOf(join(folder, path)),
  };
}

async function isFileOrLink(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && (found.isFile() || found.isSymbolicLink());
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
