import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { testConfinement, testGitUid } from "../../../test/support/git-servers.ts";
import { runOk, start, systemPath } from "../../kit/exec.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { silentLog } from "../../kit/log.ts";
import type { Confinement } from "../../sandbox/confine.ts";
import { repositoriesSuite, type RepositoriesSubject } from "../../ports/repositories.suite.ts";
import { gitCommands } from "./commands.ts";
import { inspectCommit } from "./inspect-commit.ts";
import { createLocalRepositories } from "./local-repositories.ts";
import { fileAt } from "./write-commit.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";

const root = testFolder("repositories");

// The repositories belong to git's own user, and the tests run as another one.
const trusting = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" };

async function git(
  dir: string,
  args: readonly string[],
  options: { input?: string; env?: object } = {},
): Promise<string> {
  const env = { PATH: systemPath, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1", ...trusting, ...options.env };
  const result = await runOk({ file: "git", args }, { cwd: dir, env, timeoutMs: guardMs, stdin: options.input ?? "" });
  return result.stdout.trim();
}

repositoriesSuite("repositories-local", async (): Promise<RepositoriesSubject> => {
  const repositories = await createLocalRepositories({
    dir: join(root, "suite"),
    confinement: await testConfinement(),
    log: silentLog,
  });
  // Files that root writes here represent what git's own user has received.
  const asReceived: typeof git = async (dir, ...given) => {
    const output = await git(dir, ...given);
    await runOk({ file: "chown", args: ["-R", `--reference=${dir}`, dir] });
    return output;
  };
  return { repositories, git: asReceived, close: async () => {} };
});

test("sweep removes old quarantines, old locks and half made repositories, and nothing young", async () => {
  const dir = join(root, "sweep");
  const confinement = await testConfinement();
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (...entry: unknown[]) => void warnings.push(entry) };
  const repositories = await createLocalRepositories({ dir, confinement, log });
  const repository = await repositories.ensure("prj_swept");
  const old = [join(repository, "objects", "tmp_objdir-incoming-old"), join(dir, ".new-old")];
  const young = join(repository, "objects", "tmp_objdir-incoming-new");
  for (const folder of [...old, young]) await mkdir(folder);
  const lock = join(repository, "refs", "heads", "main.lock");
  await writeFile(lock, "");
  for (const path of [...old, lock]) await utimes(path, 0, 0);
  await repositories.sweep();
  assert.deepEqual((await readdir(dir)).sort(), ["gitconfig", "prj_swept"]);
  assert.deepEqual((await readdir(join(repository, "objects"))).sort(), ["info", "pack", "tmp_objdir-incoming-new"]);
  assert.deepEqual(await readdir(join(repository, "refs", "heads")), []);
  assert.deepEqual(warnings, [], "git tidies the repository");
});

test("sweep packs a repository that many pushes have left in small packs", async () => {
  const repositories = await createLocalRepositories({
    dir: join(root, "packed"),
    confinement: await testConfinement(),
    log: silentLog,
  });
  const repository = await repositories.ensure("prj_packed");
  const packs = async () =>
    (await readdir(join(repository, "objects", "pack"))).filter((name) => name.endsWith(".pack"));
  // One more than `gc.autoPackLimit`.
  const pushes = Array.from({ length: 41 }, (_, index) => `${index}`);
  const refs: string[] = [];
  await mapWithConcurrency(pushes, 4, async (name) => {
    const blob = await git(repository, ["hash-object", "-w", "--stdin"], { input: name });
    await git(repository, ["pack-objects", "--quiet", "objects/pack/pack"], { input: `${blob}\n` });
    refs.push(`create refs/tags/${name} ${blob}\n`);
  });
  await git(repository, ["update-ref", "--stdin"], { input: refs.join("") });
  await runOk({ file: "chown", args: ["-R", `--reference=${repository}`, repository] });
  assert.equal((await packs()).length, 41);
  await repositories.sweep();
  assert.equal((await packs()).length, 1);
});

test(
  "git runs as a user of its own, which sees its repository and nothing else of the machine",
  { skip: process.geteuid?.() !== 0 && "not root" },
  async () => {
    const dir = join(root, "confined");
    const shell = join(root, "shell");
    // Replaces git: prints its user, what it can write and what it can reach.
    const says = "id -u; cat /proc/net/dev | wc -l; ls /root /home 2>&1 | wc -l; touch refs/planted /usr/planted";
    await writeFile(shell, `#!/bin/sh\n[ "$1" = init ] && exec git "$@"\n{ ${says}; } >answer 2>&1\n`, { mode: 0o755 });
    const confinement = await testConfinement();
    const shown: Confinement = {
      ...confinement,
      confine: (command, { writable, readable = [] }, cwd) =>
        confinement.confine(command, { writable, readable: [...readable, shell] }, cwd),
    };
    const repositories = await createLocalRepositories({ dir, confinement: shown, gitBin: shell, log: silentLog });
    const repository = await repositories.ensure("prj_confined");
    assert.equal((await stat(join(repository, "HEAD"))).uid, testGitUid);
    await repositories.resolve("prj_confined", "refs/heads/main");
    const [uid, interfaces, others, denied] = (await readFile(join(repository, "answer"), "utf8")).split("\n");
    assert.deepEqual([uid, interfaces], [String(testGitUid), "3"], "only the loopback of its own");
    assert.match(`${others} ${denied}`, /^2 touch: cannot touch '\/usr\/planted': Read-only file system/);
    assert.equal((await stat(join(repository, "refs", "planted"))).uid, testGitUid);
  },
);

test("a lock that a killed git left is removed before the next git starts, and one of a git at work stays", async () => {
  const confinement = await testConfinement();
  const repositories = await createLocalRepositories({ dir: join(root, "locks"), confinement, log: silentLog });
  const repository = await repositories.ensure("prj_locked");
  const id = await commit(repository, { a: "a" });
  const locks = ["refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"].map((name) => join(repository, name));
  const lock = async () => {
    for (const file of locks) await writeFile(file, "");
  };
  await lock();
  // An earlier control plane may have started this git.
  const git = start({ file: "cat", args: [] }, { env: { GIT_DIR: repository } });
  await repositories.ensure("prj_locked");
  assert.deepEqual(
    locks.map((file) => existsSync(file)),
    [true, true, true],
  );
  git.kill("SIGKILL");
  await once(git, "close");
  await repositories.ensure("prj_locked");
  assert.deepEqual(
    locks.map((file) => existsSync(file)),
    [false, false, false],
  );
  await lock();
  assert.equal(await repositories.moveRef("prj_locked", "refs/heads/main", null, id), true);
});

test("no folder that became a link leads work in a repository out of it", async () => {
  const options = { confinement: await testConfinement(), log: silentLog };
  const other = await createLocalRepositories({ ...options, dir: join(root, "elsewhere") });
  const repositories = await createLocalRepositories({ ...options, dir: join(root, "linked") });
  const [repository, elsewhere] = [await repositories.ensure("prj_linked"), await other.ensure("prj_other")];
  const id = await commit(elsewhere, { a: "a" });
  const others = join(elsewhere, "refs", "heads");
  const kept = ["main.lock", "empty"].map((name) => join(others, name));
  for (const file of kept) await writeFile(file, "");
  const old = join(elsewhere, "objects", "pack", "tmp_old");
  await mkdir(old);
  await utimes(old, 0, 0);
  const replace = async (name: string, target: string) => {
    await rm(join(repository, name), { recursive: true, force: true });
    await symlink(target, join(repository, name));
  };
  await replace("objects/pack", join(elsewhere, "objects", "pack"));
  await replace("objects/tmp_objdir-planted", join(elsewhere, "objects"));
  await replace("refs/heads", others);
  await replace("info", join(elsewhere, "refs", "tags"));
  await repositories.ensure("prj_linked");
  await repositories.sweep();
  assert.equal(await repositories.repairRef("prj_linked", "refs/heads/empty"), false);
  const planted = join(repository, "objects", "tmp_objdir-planted");
  const quarantine = {
    GIT_QUARANTINE_PATH: planted,
    GIT_OBJECT_DIRECTORY: planted,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: "",
  };
  await assert.rejects(repositories.pin("prj_linked", "bld_1", id, quarantine));
  const ofOther = { ...quarantine, GIT_QUARANTINE_PATH: join(elsewhere, "objects") };
  await assert.rejects(repositories.pin("prj_linked", "bld_1", id, ofOther), /outside of its repository/);
  assert.equal(existsSync(join(repository, "objects", id.slice(0, 2))), false, "an object came from elsewhere");
  await createLocalRepositories({ ...options, dir: join(root, "linked") });
  assert.deepEqual([kept.map((file) => existsSync(file)), existsSync(old)], [[true, true], true]);
  assert.deepEqual(await readdir(join(elsewhere, "refs", "tags")), []);
});

/** Creates a commit of these files. */
async function commit(repository: string, files: Record<string, string>): Promise<string> {
  const lines: string[] = [];
  for (const [path, text] of Object.entries(files))
    lines.push(`100644 blob ${await git(repository, ["hash-object", "-w", "--stdin"], { input: text })}\t${path}\n`);
  const tree = await git(repository, ["mktree"], { input: lines.join("") });
  return git(repository, ["-c", "user.name=A", "-c", "user.email=a@b", "commit-tree", tree, "-m", "Say hello"]);
}

test("what is committed is archived as it is", async () => {
  const repositories = await createLocalRepositories({ dir: join(root, "attributes"), log: silentLog });
  const made = await commit(await repositories.ensure("prj_attributes"), {
    ".gitattributes":
      "a export-subst\nb export-ignore\nc ident\nd text eol=crlf\ne crlf=input\nf working-tree-encoding=UTF-16LE\n* eol=crlf\n",
    ...{ a: "subject: $Format:%s$", b: "not ignored", c: "id: $Id$", d: "unix\nlines\n", e: "dos\r\n", f: "encoded" },
  });
  const tar = (await buffer(repositories.archive("prj_attributes", made))).toString("latin1");
  for (const text of ["subject: $Format:%s$", "not ignored", "id: $Id$", "unix\nlines\n", "dos\r\n", "encoded"])
    assert.ok(tar.includes(text), text);
});

test("every git that reads what was pushed is bounded", () => {
  const commands = Object.values(
    gitCommands({ gitBin: "git", prlimitBin: "/usr/bin/prlimit", confine: (command) => command }),
  );
  for (const make of commands) {
    const { file, args } = (make as (...words: string[]) => { file: string; args: readonly string[] })("a", "b");
    assert.equal(
      [file, ...args].slice(0, 5).join(" "),
      "/usr/bin/prlimit --as=3221225472: --cpu=600: --nproc=4096: git",
    );
  }
});

test("refs that a power cut emptied can be moved again: branches, pins and HEAD", async () => {
  const repositories = await createLocalRepositories({
    dir: join(root, "damaged"),
    confinement: await testConfinement(),
    log: silentLog,
  });
  const repository = await repositories.ensure("prj_damaged");
  const id = await commit(repository, { a: "a" });
  const ref = "refs/heads/main";
  const damage = async (name: string, content: string | Uint8Array = "") => writeFile(join(repository, name), content);
  await repositories.moveRef("prj_damaged", ref, null, id);
  assert.equal(await repositories.repairRef("prj_damaged", ref), false);
  await damage(ref);
  await assert.rejects(repositories.moveRef("prj_damaged", ref, null, id), /could not move/);
  assert.equal(await repositories.repairRef("prj_damaged", ref), true);
  assert.equal(await repositories.moveRef("prj_damaged", ref, null, id), true);

  await repositories.pin("prj_damaged", "bld_1", id, null);
  await damage("refs/berth/builds/bld_1", new Uint8Array(41));
  await repositories.pin("prj_damaged", "bld_1", id, null);
  await damage("refs/berth/builds/bld_1");
  await repositories.unpin("prj_damaged", "bld_1");

  await damage("refs/heads/topic");
  await repositories.sweep();
  assert.equal(await repositories.moveRef("prj_damaged", "refs/heads/topic", null, id), true);

  await damage("HEAD");
  await repositories.ensure("prj_damaged");
  assert.equal(await repositories.resolve("prj_damaged", ref), id);
});

test("a file is found whatever its name contains", async () => {
  const dir = join(root, "names");
  await git(root, ["init", "--quiet", "--bare", dir]);
  const blob = await git(dir, ["hash-object", "-w", "--stdin"], { input: "text" });
  const path = "a line\nbreak\tand more";
  const tree = await git(dir, ["mktree", "-z"], { input: `100644 blob ${blob}\t${path}\0` });
  const as = ["-c", "user.name=A", "-c", "user.email=a@b"];
  const id = await git(dir, [...as, "commit-tree", tree, "-m", "Say hello"]);
  const commands = gitCommands({ gitBin: "git", prlimitBin: null, confine: (command) => command });
  const place = { cwd: dir, env: { PATH: systemPath, ...trusting } };
  assert.equal(String(await fileAt(commands, place, { commit: id, path, maxBytes: 100 })), "text");
});

test("a commit that git had no time to look at is not called something else than a commit", async () => {
  const dir = join(root, "ended");
  const ended = join(root, "ended-git");
  await git(root, ["init", "--quiet", "--bare", dir]);
  const id = await commit(dir, { a: "a" });
  await writeFile(ended, `#!/bin/sh\n[ "$2" = -t ] && kill -KILL $$\nexec git "$@"\n`, { mode: 0o755 });
  const commands = gitCommands({ gitBin: ended, prlimitBin: null, confine: (command) => command });
  const place = { cwd: dir, env: { PATH: systemPath, ...trusting } };
  const inspection = await inspectCommit(commands, place, id, { entries: 10, bytes: 1000 });
  assert.equal(inspection.outcome === "refused" && inspection.code, "source_unreadable");
});
