import { randomBytes } from "node:crypto";
import { createWriteStream, existsSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { findPrlimit } from "../../kit/bounded-command.ts";
import { run, runOk, type Command } from "../../kit/exec.ts";
import { folderBytes } from "../../kit/folder-bytes.ts";
import type { Log } from "../../kit/log.ts";
import { missingRepository } from "../../kit/part-missing.ts";
import { readSmallFile } from "../../kit/open-folder.ts";
import type {
  CommitChange,
  ComparedCommits,
  ComparisonLimits,
  Fetched,
  FileToRead,
  Inspection,
  NewCommit,
  Quarantine,
  Remote,
  RefChange,
  Repositories,
  PartOfCommit,
  PinnedPart,
  TreeLimits,
  Written,
} from "../../ports/repositories.ts";
import { unconfined, type Confinement, type Shown } from "../../sandbox/confine.ts";
import { writeAttributes } from "./attributes.ts";
import { checkRefs } from "./check-refs.ts";
import { gitCommands, gitEnv, outsideQuarantine, type GitCommands } from "./commands.ts";
import { removeDamagedRef, removeDamagedRefs, repairHead } from "./damaged-refs.ts";
import { removeDeadLocks } from "./dead-locks.ts";
import { compareCommits } from "./compare-commits.ts";
import { writeGlobalConfig } from "./global-config.ts";
import { fetchRemote, makeDeployKey, type RemoteAccess } from "./fetch-remote.ts";
import { commitId, noCommit, pinRef, refName } from "./git-names.ts";
import { inspectCommit } from "./inspect-commit.ts";
import { keepObjects } from "./keep-objects.ts";
import { isSourcePath, SourceRefused } from "./source-path.ts";
import { streamOf } from "./stream-of.ts";
import { repositoriesIn, sweepDrafts, sweepLeftovers } from "./sweep-leftovers.ts";
import { fileAt, firstEntries, writeCommit } from "./write-commit.ts";

export interface LocalRepositoriesOptions {
  /** The folder with one bare repository per project, named by the project's id. Created if missing. */
  readonly dir: string;
  readonly gitBin?: string;
  /** How git is isolated while it reads pushed data. Default: not at all. */
  readonly confinement?: Confinement;
  /** Default: no remote repository can be fetched. */
  readonly access?: RemoteAccess;
  readonly log: Log;
}

const noAccess: RemoteAccess = {
  addresses: { resolve: async () => [], mayReach: () => false },
  certificates: null,
};

const commandTimeoutMs = 30_000;
const packTimeoutMs = 10 * 60_000;

/** Stores repositories as folders and works on them with git's plumbing commands. Failures are thrown as `CommandFailed` or file errors. */
export async function createLocalRepositories(options: LocalRepositoriesOptions): Promise<Repositories> {
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  const dir = resolve(options.dir);
  const { confinement = unconfined, gitBin = "git", access = noAccess, log } = options;
  await writeGlobalConfig(join(dir, "gitconfig"));
  return new LocalRepositories({ dir, confinement, gitBin, access, log });
}

interface GitStart {
  readonly shown?: Partial<Shown>;
  readonly startBy?: (command: Command) => Command;
}

const same = (command: Command) => command;

class LocalRepositories implements Repositories {
  readonly #dir: string;
  readonly #configFile: string;
  readonly #confinement: Confinement;
  readonly #gitIn: (repositoryDir: string, more?: GitStart) => GitCommands;
  readonly #access: RemoteAccess;
  readonly #log: Log;

  constructor({ dir, confinement, gitBin, access, log }: Required<LocalRepositoriesOptions>) {
    const configFile = join(dir, "gitconfig");
    const prlimitBin = findPrlimit();
    this.#dir = dir;
    this.#configFile = configFile;
    this.#confinement = confinement;
    this.#access = access;
    this.#gitIn = (
      repositoryDir,
      { shown: { writable = [], readable = [], placed = [] } = {}, startBy = same } = {},
    ) => {
      const shown = { writable: [repositoryDir, ...writable], readable: [configFile, ...readable], placed };
      const confine = (each: Command) => confinement.confine(startBy(each), shown, repositoryDir);
      return gitCommands({ gitBin, prlimitBin, confine });
    };
    this.#log = log;
  }

  async ensure(projectId: string, hasCommits = false): Promise<string> {
    const dir = this.#folder(projectId);
    if (existsSync(join(dir, "HEAD"))) {
      await repairHead(dir);
      await removeDeadLocks(dir);
      return dir;
    }
    if (hasCommits && (await readdir(dir).catch(() => undefined))?.length !== 0) throw missingRepository(projectId);
    // Create under another name and rename, so that a crash leaves no partial repository and concurrent calls are safe.
    const draft = join(this.#dir, `.new-${randomBytes(6).toString("hex")}`);
    await mkdir(draft, { mode: 0o700 });
    await this.#confinement.ownOne(draft);
    await runOk(this.#gitIn(draft).init(draft), { env: gitEnv(this.#configFile), timeoutMs: commandTimeoutMs });
    await writeAttributes(draft);
    try {
      await rename(draft, dir);
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      if (!existsSync(join(dir, "HEAD"))) throw error;
    }
    return dir;
  }

  async exists(projectId: string): Promise<boolean> {
    return existsSync(join(this.#folder(projectId), "HEAD"));
  }

  async inspect(
    projectId: string,
    commit: string,
    quarantine: Quarantine | null,
    limits: TreeLimits,
  ): Promise<Inspection> {
    return inspectCommit(
      this.#gitIn(this.#folder(projectId)),
      this.#place(projectId, quarantine),
      commitId(commit),
      limits,
    );
  }

  async peel(projectId: string, tag: string, quarantine: Quarantine | null): Promise<string | null> {
    return this.#parse(projectId, commitId(tag), quarantine);
  }

  checkRefs(projectId: string, refs: readonly RefChange[], quarantine: Quarantine | null) {
    const place = { ...this.#place(projectId, quarantine), timeoutMs: packTimeoutMs };
    return checkRefs(this.#gitIn(this.#folder(projectId)), { inside: place, outside: outsideQuarantine(place) }, refs);
  }

  async countCommits(projectId: string, { from, to, ...where }: CommitChange) {
    const { git, place } = this.#reading(projectId, where);
    const counted = await run(git.countCommits(commitId(from), commitId(to)), place);
    if (counted.exitCode !== 0) return null;
    const [removed = 0, added = 0] = counted.stdout.trim().split("\t").map(Number);
    return { added, removed };
  }

  async pin(projectId: string, buildId: string, commit: string, quarantine: Quarantine | null): Promise<void> {
    if (quarantine !== null) {
      const from = resolve(quarantine.GIT_QUARANTINE_PATH);
      if (dirname(from) !== join(this.#folder(projectId), "objects"))
        throw new Error("A quarantine lies outside of its repository.");
      await keepObjects(this.#folder(projectId), basename(from), this.#confinement.ownOne);
    }
    await removeDamagedRef(this.#folder(projectId), pinRef(buildId));
    await runOk(
      this.#gitIn(this.#folder(projectId)).updateRef(pinRef(buildId), commitId(commit)),
      this.#limited(projectId),
    );
  }

  async unpin(projectId: string, buildId: string): Promise<void> {
    if (!existsSync(this.#folder(projectId))) return;
    if (await removeDamagedRef(this.#folder(projectId), pinRef(buildId))) return;
    await runOk(this.#gitIn(this.#folder(projectId)).deleteRef(pinRef(buildId)), this.#limited(projectId));
  }

  async #openQuarantine(projectId: string) {
    const dir = this.#folder(projectId);
    const folder = join(dir, "objects", `incoming-upload-${randomBytes(6).toString("hex")}`);
    await mkdir(folder, { mode: 0o700 });
    await this.#confinement.ownOne(folder);
    const quarantine: Quarantine = {
      GIT_OBJECT_DIRECTORY: folder,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(dir, "objects"),
      GIT_QUARANTINE_PATH: folder,
    };
    const place = this.#place(projectId, quarantine);
    return { dir, folder, quarantine, place: outsideQuarantine(place) };
  }

  async fetch(projectId: string, remote: Remote, signal: AbortSignal): Promise<Fetched> {
    refName(`refs/heads/${remote.branch}`);
    const { dir, quarantine, place } = await this.#openQuarantine(projectId);
    let isKept = false;
    try {
      const fetched = await fetchRemote({
        remote,
        access: this.#access,
        confinement: this.#confinement,
        git: (shown, startBy) => this.#gitIn(dir, { shown, startBy }),
        dir: this.#dir,
        quarantine: quarantine.GIT_QUARANTINE_PATH,
        place: { ...place, timeoutMs: packTimeoutMs, signal },
      });
      isKept = fetched.outcome === "fetched";
      return fetched.outcome === "fetched" ? { ...fetched, quarantine } : fetched;
    } finally {
      if (!isKept) await this.discard(projectId, quarantine);
    }
  }

  makeDeployKey(comment: string) {
    return makeDeployKey(this.#dir, comment);
  }

  async write(projectId: string, commit: NewCommit): Promise<Written> {
    const { dir, folder, quarantine, place } = await this.#openQuarantine(projectId);
    const withIndex = { ...place, env: { ...place.env, GIT_INDEX_FILE: join(folder, "index") } };
    try {
      const id = await writeCommit(this.#gitIn(dir), { ...withIndex, timeoutMs: packTimeoutMs }, commit);
      return { outcome: "written", commit: id, quarantine };
    } catch (error) {
      await this.discard(projectId, quarantine);
      if (!(error instanceof SourceRefused)) throw error;
      return { outcome: "refused", code: error.code, summary: error.message };
    }
  }

  async discard(projectId: string, { GIT_QUARANTINE_PATH: folder }: Quarantine): Promise<void> {
    const objects = join(this.#folder(projectId), "objects");
    if (dirname(resolve(folder)) !== objects) throw new Error("A quarantine lies outside of its repository.");
    await runOk({ file: "rm", args: ["--recursive", "--force", "--", basename(folder)] }, { cwd: objects });
  }

  async pinned(projectId: string, name: string): Promise<string | null> {
    return this.#parse(projectId, pinRef(name));
  }

  async parentOf(projectId: string, commit: string): Promise<string | null> {
    return this.#parse(projectId, `${commitId(commit)}^`);
  }

  async files(projectId: string, commit: string, limit: number, { folder, quarantine = null }: PartOfCommit = {}) {
    const git = this.#gitIn(this.#folder(projectId));
    const place = this.#limited(projectId, quarantine);
    const entries = await firstEntries(git, place, { commit: commitId(commit), path: folder, limit });
    return entries.map(({ path, mode, sizeBytes }) => ({
      path,
      size_bytes: sizeBytes,
      executable: mode === "100755",
    }));
  }

  async read(projectId: string, commit: string, { path, maxBytes, quarantine = null }: FileToRead) {
    const git = this.#gitIn(this.#folder(projectId));
    const place = this.#limited(projectId, quarantine);
    return isSourcePath(path) ? fileAt(git, place, { commit: commitId(commit), path, maxBytes }) : null;
  }

  async changedPaths(projectId: string, { from, to, ...where }: CommitChange, limit: number) {
    const { git, place, has } = this.#reading(projectId, where);
    if (!(await has(from))) return null;
    const limits = { ...place, maxOutputBytes: 256 * 1024 * 1024 };
    const listed = await runOk(git.changedPaths(from, commitId(to)), limits);
    return listed.stdout.split("\0").filter(Boolean).slice(0, limit);
  }

  async compare(projectId: string, { from, to, path, beside }: ComparedCommits, limits: ComparisonLimits) {
    const { git, place, has } = this.#reading(projectId, { beside });
    for (const commit of [from, to]) if (!(await has(commit))) return null;
    return compareCommits(git, place, { from, to, path }, limits);
  }

  /** Reads a repository together with a quarantine or with the repository of another project. */
  #reading(projectId: string, { quarantine = null, beside }: Partial<CommitChange>) {
    const readable = beside === undefined ? [] : [join(this.#folder(beside), "objects")];
    const git = this.#gitIn(this.#folder(projectId), { shown: { readable } });
    const lent = readable.map((folder) => ({ GIT_ALTERNATE_OBJECT_DIRECTORIES: folder }))[0];
    const place = this.#limited(projectId, quarantine ?? lent);
    const has = async (commit: string) => (await run(git.parse(commitId(commit)), place)).exitCode === 0;
    return { git, place, has };
  }

  archive(projectId: string, commit: string, { folder, quarantine = null }: PartOfCommit = {}): Readable {
    const command = this.#gitIn(this.#folder(projectId)).archive(commitId(commit), folder);
    return streamOf("archive", command, this.#place(projectId, quarantine));
  }

  async pack(projectId: string, part?: PinnedPart): Promise<Readable | null> {
    if (!(await this.exists(projectId))) return null;
    const git = this.#gitIn(this.#folder(projectId));
    if (part !== undefined) {
      const since = part.since === null ? null : await this.#parse(projectId, commitId(part.since));
      return streamOf("bundle", git.bundlePart(pinRef(part.pin), since), this.#place(projectId));
    }
    const { stdout } = await runOk(git.firstRef(), this.#limited(projectId));
    return stdout === "" ? null : streamOf("bundle", git.bundle(), this.#place(projectId));
  }

  async unpack(projectId: string, bundle: Readable): Promise<void> {
    const dir = await this.ensure(projectId);
    const file = join(dir, "restored.bundle");
    try {
      await pipeline(bundle, createWriteStream(file, { mode: 0o600 }));
      await this.#confinement.ownOne(file);
      await runOk(this.#gitIn(dir).unbundle(file), { ...this.#place(projectId), timeoutMs: packTimeoutMs });
    } finally {
      await rm(file, { force: true });
    }
  }

  async resolve(projectId: string, ref: string): Promise<string | null> {
    return this.#parse(projectId, refName(ref));
  }

  async moveRef(projectId: string, ref: string, from: string | null, to: string): Promise<boolean> {
    const old = from === null ? noCommit : commitId(from);
    const dir = this.#folder(projectId);
    await removeDeadLocks(dir);
    const moved = await run(this.#gitIn(dir).updateRef(refName(ref), commitId(to), old), this.#limited(projectId));
    if (moved.exitCode === 0) return true;
    if ((await this.resolve(projectId, ref)) !== from) return false;
    throw new Error(`git could not move ${ref}: ${moved.stderr.trim().slice(-500)}`);
  }

  async repairRef(projectId: string, ref: string): Promise<boolean> {
    return removeDamagedRef(this.#folder(projectId), refName(ref));
  }

  async setHead(projectId: string, ref: string): Promise<void> {
    const head = await readSmallFile(join(this.#folder(projectId), "HEAD"));
    if (head?.toString() === `ref: ${refName(ref)}\n`) return;
    await runOk(this.#gitIn(this.#folder(projectId)).setHead(refName(ref)), this.#limited(projectId));
  }

  diskBytes(projectId: string): Promise<number | null> {
    return folderBytes(this.#folder(projectId));
  }

  async sweep(): Promise<void> {
    await sweepDrafts(this.#dir);
    for (const dir of await repositoriesIn(this.#dir)) await this.#tidy(dir);
  }

  async #tidy(dir: string): Promise<void> {
    await sweepLeftovers(dir);
    await removeDeadLocks(dir);
    await removeDamagedRefs(dir);
    const place = { cwd: dir, env: gitEnv(this.#configFile), timeoutMs: packTimeoutMs };
    const packed = await run(this.#gitIn(dir).pack(), place);
    if (packed.exitCode !== 0)
      this.#log.warn({ dir, stderr: packed.stderr.slice(-500) }, "git could not pack a repository");
  }

  async #parse(projectId: string, expression: string, quarantine: Quarantine | null = null): Promise<string | null> {
    const found = await run(
      this.#gitIn(this.#folder(projectId)).parse(expression),
      this.#limited(projectId, quarantine),
    );
    return found.exitCode === 0 ? found.stdout.trim() : null;
  }

  #limited(projectId: string, objects: Partial<Quarantine> | null = null) {
    return { ...this.#place(projectId, objects), timeoutMs: commandTimeoutMs };
  }

  /** Renames the repository first, so that a crash leaves no partial one under the project's name; `sweep` deletes the rest. */
  async remove(projectId: string): Promise<void> {
    const doomed = join(this.#dir, `.new-removed-${projectId}`);
    const dir = this.#folder(projectId);
    if (existsSync(dir)) await rename(dir, doomed);
    await runOk({ file: "rm", args: ["--recursive", "--force", "--", doomed] });
  }

  #place(projectId: string, objects: Partial<Quarantine> | null = null) {
    const dir = this.#folder(projectId);
    // Own process group: a signal to the control plane's group must not kill git in the middle of a push.
    return {
      cwd: dir,
      env: { ...gitEnv(this.#configFile, objects), GIT_DIR: dir },
      ownGroup: true,
      isBackground: true,
    };
  }

  #folder(projectId: string): string {
    if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(projectId)) throw new Error("Not a project id.");
    return join(this.#dir, projectId);
  }
}
