import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import type { Quarantine, Repositories } from "./repositories.ts";

/** What an adapter's test gives the suite: fresh repositories, and real git to put commits into them. */
export interface RepositoriesSubject {
  readonly repositories: Repositories;
  /** Runs git in `dir` and returns its trimmed stdout; throws when it fails. */
  readonly git: (dir: string, args: readonly string[], options?: { input?: string; env?: object }) => Promise<string>;
  readonly close: () => Promise<void>;
}

const limits = { entries: 200_000, bytes: 1024 ** 3 };
const project = "prj_suite";

/** The rules every adapter of `Repositories` keeps. */
export function repositoriesSuite(name: string, open: () => Promise<RepositoriesSubject>): void {
  describe(`${name} keeps the rules of repositories`, () => {
    let subject: RepositoriesSubject;
    let repositories: Repositories;
    let dir: string;

    before(async () => {
      subject = await open();
      repositories = subject.repositories;
      dir = await repositories.ensure(project);
    });
    after(() => subject.close());

    const git = (args: readonly string[], options?: { input?: string; env?: object }) =>
      subject.git(dir, args, options);
    const author = ["-c", "user.name=Ada Lovelace", "-c", "user.email=ada@example.org"];
    /** A commit of the tree that `mktree` lines describe. */
    async function commit(lines: string, message = "Say hello", env: object = {}): Promise<string> {
      const tree = await git(["mktree", "--missing"], { input: lines, env });
      return git([...author, "commit-tree", tree, "-m", message], { env });
    }
    const blob = (text: string, env: object = {}) => git(["hash-object", "-w", "--stdin"], { input: text, env });
    const hello = async (text = "hello\n") => commit(`100644 blob ${await blob(text)}\thello.txt\n`);
    const fine = async (id: string) => {
      const inspection = await repositories.inspect(project, id, null, limits);
      assert.equal(inspection.outcome, "fine");
      return inspection.outcome === "fine" ? inspection : assert.fail();
    };
    const refused = async (id: string, within = limits) => {
      const inspection = await repositories.inspect(project, id, null, within);
      return inspection.outcome === "refused" ? inspection.code : assert.fail(`not refused: ${inspection.outcome}`);
    };
    async function quarantine(): Promise<Quarantine> {
      const path = await mkdtemp(join(dir, "objects", "incoming-"));
      await mkdir(join(path, "pack"));
      return {
        GIT_OBJECT_DIRECTORY: path,
        GIT_ALTERNATE_OBJECT_DIRECTORIES: join(dir, "objects"),
        GIT_QUARANTINE_PATH: path,
      };
    }

    test("ensure is idempotent, also twice at once", async () => {
      const [first, second] = await Promise.all([repositories.ensure("prj_twice"), repositories.ensure("prj_twice")]);
      assert.equal(first, second);
      assert.equal(await subject.git(first, ["rev-parse", "--is-bare-repository"]), "true");
    });

    test("a commit's first line and author are told, without control characters", async () => {
      const id = await commit(`100644 blob ${await blob("x")}\tx\n`, "Fix \u001b[31mred\u0007 things\n\nbody");
      const { message, author: by } = await fine(id);
      assert.deepEqual([message, by], ["Fix [31mred things", "Ada Lovelace"]);
    });

    test("submodules are noted", async () => {
      const { notes = [] } = await fine(await commit(`160000 commit ${"1".repeat(40)}\tvendor\n`));
      assert.equal(notes.length, 1);
      assert.match(notes[0] as string, /Submodule vendor /);
    });

    test("a tree with too many entries or bytes is refused", async () => {
      const id = await hello("x".repeat(2000));
      assert.equal(await refused(id, { entries: 0, bytes: 1e6 }), "source_too_large");
      assert.equal(await refused(id, { entries: 10, bytes: 1999 }), "source_too_large");
    });

    test("a tree bomb made of shared folders is refused without being walked", async () => {
      let tree = await git(["mktree"], { input: `100644 blob ${await blob("boom")}\tleaf\n` });
      for (let level = 0; level < 12; level += 1) {
        const lines = Array.from({ length: 16 }, (_, i) => `040000 tree ${tree}\td${i.toString(16)}\n`).join("");
        tree = await git(["mktree"], { input: lines });
      }
      assert.equal(await refused(await git([...author, "commit-tree", tree, "-m", "bomb"])), "source_too_large");
    });

    test("a path that no file system could hold is refused", async () => {
      const name = "n".repeat(200);
      let tree = await git(["mktree"], { input: `100644 blob ${await blob("deep")}\t${name}\n` });
      for (let level = 0; level < 25; level += 1)
        tree = await git(["mktree"], { input: `040000 tree ${tree}\t${name}\n` });
      assert.equal(await refused(await git([...author, "commit-tree", tree, "-m", "deep"])), "source_too_large");
    });

    test("what is not a commit is refused", async () => {
      assert.equal(await refused(await blob("not a commit")), "not_a_commit");
      assert.equal(await refused("2".repeat(40)), "not_a_commit");
    });

    test("names that could be options or expressions are faults", async () => {
      await assert.rejects(repositories.inspect(project, "--help", null, limits));
      await assert.rejects(repositories.resolve(project, "--all"));
      await assert.rejects(repositories.resolve(project, "refs/heads/main@{1}"));
      await assert.rejects(repositories.ensure("../elsewhere"));
    });

    test("a pinned commit outlives its quarantine, and pinning again changes nothing", async () => {
      const pushed = await quarantine();
      const file = await blob("from quarantine", { ...pushed });
      const id = await commit(`100644 blob ${file}\ta.txt\n`, "Quarantined", { ...pushed });
      const inspection = await repositories.inspect(project, id, pushed, limits);
      assert.equal(inspection.outcome, "fine");
      await assert.rejects(subject.git(dir, ["cat-file", "-e", id]));
      await repositories.pin(project, "bld_one", id, pushed);
      await repositories.pin(project, "bld_one", id, pushed);
      await subject.git(dir, ["fsck", "--strict", id]);
      assert.equal(await repositories.resolve(project, "refs/berth/builds/bld_one"), id);
    });

    test("objects that were packed in the quarantine are kept too", async () => {
      const source = await repositories.ensure("prj_source");
      const file = await subject.git(source, ["hash-object", "-w", "--stdin"], { input: "packed" });
      const tree = await subject.git(source, ["mktree"], { input: `100644 blob ${file}\tp\n` });
      const id = await subject.git(source, [...author, "commit-tree", tree, "-m", "packed"]);
      const pushed = await quarantine();
      const base = join(pushed.GIT_OBJECT_DIRECTORY, "pack", "pack");
      await subject.git(source, ["pack-objects", "--revs", "--quiet", base], { input: `${id}\n` });
      await repositories.pin(project, "bld_packed", id, pushed);
      await subject.git(dir, ["fsck", "--strict", id]);
      assert.ok((await readdir(join(dir, "objects", "pack"))).some((name) => name.endsWith(".idx")));
    });

    test("unpin lets go and is idempotent", async () => {
      await repositories.pin(project, "bld_gone", await hello("gone"), null);
      await repositories.unpin(project, "bld_gone");
      await repositories.unpin(project, "bld_gone");
      assert.equal(await repositories.resolve(project, "refs/berth/builds/bld_gone"), null);
    });

    test("archive streams the tree as a tar", async () => {
      const tar = await buffer(repositories.archive(project, await hello("in the tar\n")));
      assert.equal(tar.length % 512, 0);
      assert.ok(tar.includes("hello.txt") && tar.includes("in the tar\n"));
    });

    test("archive of a missing commit destroys the stream", async () => {
      await assert.rejects(buffer(repositories.archive(project, "3".repeat(40))), /archive failed/);
    });

    test("moveRef moves a branch only from where the caller thinks it is", async () => {
      const [one, two] = [await hello("one"), await hello("two")];
      const ref = "refs/heads/moving";
      assert.equal(await repositories.resolve(project, ref), null);
      assert.equal(await repositories.moveRef(project, ref, two, one), false);
      assert.equal(await repositories.moveRef(project, ref, null, one), true);
      assert.equal(await repositories.moveRef(project, ref, null, two), false);
      assert.equal(await repositories.moveRef(project, ref, one, two), true);
      assert.equal(await repositories.resolve(project, ref), two);
    });

    test("of ten moves at once from the same commit exactly one wins", async () => {
      const targets = await Promise.all(Array.from({ length: 10 }, (_, i) => hello(`race ${i}`)));
      const moves = targets.map((to) => repositories.moveRef(project, "refs/heads/race", null, to));
      assert.equal((await Promise.all(moves)).filter(Boolean).length, 1);
    });

    test("setHead chooses what a clone checks out", async () => {
      await repositories.setHead(project, "refs/heads/trunk");
      assert.equal(await git(["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    });

    test("sweep keeps pinned commits, branches and pushes in progress", async () => {
      const id = await hello("kept");
      await repositories.pin(project, "bld_kept", id, null);
      const pushed = await quarantine();
      await repositories.sweep();
      await subject.git(dir, ["fsck", "--strict", id]);
      assert.ok(await readdir(pushed.GIT_QUARANTINE_PATH));
    });
  });
}
