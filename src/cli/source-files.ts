import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import ignore, { type Ignore } from "ignore";
import { create } from "tar";
import { run } from "../kit/exec.ts";
import type { Environment } from "./context.ts";
import { usageError } from "./failures.ts";

/** What never belongs to a source, whatever the ignore files say. */
const never = [".git"];
/** Left out of folders that git does not look after: what package managers make, anew on every machine. */
const made = ["node_modules/", ".venv/", "__pycache__/", ".DS_Store"];
const listTimeoutMs = 60_000;

/** The files of a folder that are its source: git's own answer inside of a repository, else by .gitignore; without what .berthignore names. */
export async function sourceFiles(environment: Environment, folder: string): Promise<readonly string[]> {
  const found = await lstat(folder).catch(() => undefined);
  if (found?.isDirectory() !== true) throw usageError(`There is no folder ${folder}.`);
  const listed = (await listedByGit(environment, folder)) ?? (await listedByWalk(folder));
  const berth = ignore().add(await textOf(join(folder, ".berthignore")));
  const kept = listed.filter((path) => !berth.ignores(path));
  const present = await Promise.all(kept.map((path) => isFileOrLink(join(folder, path))));
  const files = kept.filter((_, index) => present[index]);
  if (files.length > 0) return files;
  throw usageError(`${folder} holds no file to deploy.`, "Are all of them named in .gitignore or .berthignore?");
}

/** A gzip tar archive of these files, made while it is read. */
export function archiveOf(folder: string, files: readonly string[]): ReadableStream<Uint8Array> {
  // With `./`, because a name that begins with @ would be read as another archive.
  const pack = create(
    { cwd: folder, gzip: true, portable: true, noDirRecurse: true },
    files.map((path) => `./${path}`),
  );
  return Readable.toWeb(Readable.from(pack)) as ReadableStream<Uint8Array>;
}

// Undefined outside of a repository, and without git.
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

/** The files below a folder; each folder's .gitignore counts for what lies in it. */
async function listedByWalk(folder: string): Promise<string[]> {
  const found: string[] = [];
  const visit = async (inside: string, rules: readonly { at: string; own: Ignore }[]): Promise<void> => {
    const own = ignore().add(await textOf(join(folder, inside, ".gitignore")));
    const all = [...rules, { at: inside, own }];
    const isIgnored = (path: string) => all.some(({ at, own: each }) => each.ignores(path.slice(at.length)));
    for (const entry of await readdir(join(folder, inside), { withFileTypes: true })) {
      const path = `${inside}${entry.name}`;
      if (never.includes(entry.name) || isIgnored(entry.isDirectory() ? `${path}/` : path)) continue;
      if (entry.isDirectory()) await visit(`${path}/`, all);
      else found.push(path);
    }
  };
  await visit("", [{ at: "", own: ignore().add(made) }]);
  return found;
}

async function isFileOrLink(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && (found.isFile() || found.isSymbolicLink());
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
