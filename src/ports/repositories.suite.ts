import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { tarOf } from "../../test/support/tar.ts";
import type { NewCommit, Quarantine, Repositories } from "./repositories.ts";

/** What an adapter's test provides to the suite: empty repositories, and real git to create commits in them. */
export interface RepositoriesSubject {
  readonly repositories: Repositories;
  /** Runs git in `dir` and returns its trimmed stdout; throws when it fails. */
  readonly git: (dir: string, args: readonly string[], options?: { input?: string; env?: object }) => Promise<string>;
  readonly close: () => Promise<void>;
}

const limits = { entries: 200_000, bytes: 1024 ** 3 };
const project = "prj_suite";

/** The rules that every adapter of `Repositories` obeys. */
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
    /** Creates a commit of the tree that these `mktree` lines describe. */
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

    test("all refs and what they need come back in another repository, as of the beginning", async () => {
      assert.equal(await repositories.pack("prj_none"), null);
      await repositories.ensure("prj_packed");
      assert.equal(await repositories.pack("prj_packed"), null);
      const id = await hello("packed\n");
      await repositories.moveRef(project, "refs/heads/packed", null, id);
      await repositories.pin(project, "bld_packed", id, null);
      const bundle = await repositories.pack(project);
      assert.ok(bundle);
      await repositories.unpack("prj_packed", bundle);
      assert.equal(await repositories.resolve("prj_packed", "refs/heads/packed"), id);
      assert.equal(await repositories.pinned("prj_packed", "bld_packed"), id);
      const file = await repositories.read("prj_packed", id, { path: "hello.txt", maxBytes: 100 });
      assert.equal(file?.toString(), "packed\n");
      await assert.rejects(repositories.unpack("prj_packed", Readable.from([Buffer.from("no bundle")])));
    });

    test("refs are checked as git checks them after a push's hook, and nothing is left behind", async () => {
      const [one, two] = [await hello("one\n"), await hello("two\n")];
      const checked = (name: string) => `refs/heads/checked/${name}`;
      const check = (...refs: [string, string | null, string | null][]) =>
        repositories.checkRefs(
          project,
          refs.map(([name, old, to]) => ({ name: checked(name), old, new: to })),
          null,
        );
      await repositories.moveRef(project, checked("main"), null, one);
      assert.equal(await check(["main", one, two], ["next", null, two], ["gone", null, null]), null);
      assert.equal(await check(["main", one, null]), null);
      assert.match((await check(["main", two, one])) ?? "", /cannot lock ref/);
      assert.match((await check(["main", null, two])) ?? "", /already exists/);
      assert.match((await check(["main/next", null, two])) ?? "", /cannot create/);
      assert.match((await check(["a..b", null, two])) ?? "", /invalid ref format/);
      assert.notEqual(await check(["next", null, "1".repeat(40)]), null);
      assert.equal(await repositories.resolve(project, checked("main")), one);
      assert.equal(await repositories.resolve(project, checked("next")), null);
    });

    test("a commit whose objects are not all there is refused", async () => {
      const tree = await git(["mktree", "--missing"], { input: `100644 blob ${"1".repeat(40)}\tgone.txt\n` });
      const broken = await git([...author, "commit-tree", tree, "-m", "Broken"]);
      const refs = [{ name: "refs/heads/broken", old: null, new: broken }];
      assert.match((await repositories.checkRefs(project, refs, null)) ?? "", /1111111/);
    });

    test("commits are counted from one to another", async () => {
      const tree = await git(["mktree"], { input: "" });
      const child = (parent: string, message: string) =>
        git([...author, "commit-tree", tree, "-p", parent, "-m", message]);
      const first = await git([...author, "commit-tree", tree, "-m", "First"]);
      const next = await child(await child(first, "Second"), "Third");
      const count = (from: string, to: string) => repositories.countCommits(project, { from, to, quarantine: null });
      assert.deepEqual(await count(first, next), { added: 2, removed: 0 });
      assert.deepEqual(await count(await child(first, "Other"), next), { added: 2, removed: 1 });
      assert.equal(await count(first, "1".repeat(40)), null);
    });

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

    test("a tree whose paths are too long together is refused: they are listed in memory", async () => {
      const name = (number: number) => `${number}`.padStart(200, "n");
      const many = (entry: string, count: number) =>
        Array.from({ length: count }, (_, number) => `${entry}\t${name(number)}\n`).join("");
      let tree = await git(["mktree"], { input: many(`100644 blob ${await blob("x")}`, 100) });
      tree = await git(["mktree"], { input: many(`040000 tree ${tree}`, 200) });
      for (let level = 0; level < 8; level += 1)
        tree = await git(["mktree"], { input: many(`040000 tree ${tree}`, 1) });
      assert.equal(await refused(await git([...author, "commit-tree", tree, "-m", "paths"])), "source_too_large");
    });

    test("what is not a commit is refused", async () => {
      assert.equal(await refused(await blob("not a commit")), "not_a_commit");
      assert.equal(await refused("2".repeat(40)), "not_a_commit");
      const named = await commit(`100644 blob ${await blob("tagged")}\ta.txt\n`, "Tagged");
      const tag = await git(["mktag"], {
        input: `object ${named}\ntype commit\ntag v1\ntagger a <a@b.test> 1 +0000\n\nv1\n`,
      });
      const inspection = await repositories.inspect(project, tag, null, limits);
      assert.ok(inspection.outcome === "refused" && inspection.hint.includes("v1^{}:main"), JSON.stringify(inspection));
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

    const enough = { commits: 10, files: 10, fileBytes: 10_000, bytes: 50_000, timeoutMs: 60_000 };
    const between = async (from: string, to: string, more: object = {}, within: object = {}) =>
      (await repositories.compare(project, { from, to, ...more }, { ...enough, ...within })) ?? assert.fail("missing");
    /** Creates a commit of these files; a line of `mktree` stands for itself. */
    const treeOf = async (files: Record<string, string>, ...parents: string[]) => {
      const lines = Object.entries(files).map(async ([path, text]) => `100644 blob ${await blob(text)}\t${path}`);
      const tree = await git(["mktree", "-z"], {
        input: (await Promise.all(lines)).map((line) => `${line}\0`).join(""),
      });
      return git([
        ...author,
        "commit-tree",
        tree,
        "-m",
        `Of ${parents.length}`,
        ...parents.flatMap((id) => ["-p", id]),
      ]);
    };

    test("compare shows commits, and the lines of each changed file; binary files have none", async () => {
      const base = await treeOf({ "a.txt": "one\ntwo\n", gone: "x\n", "b.bin": "\u0000a", same: "s\n" });
      const odd = 'new "file"\n\t:é';
      const later = await treeOf(
        { "a.txt": "one\n2\n", [odd]: "diff --git a b\n@@ x\n", "b.bin": "\u0000b", same: "s\n" },
        base,
      );
      const { commits, files, complete } = await between(base, later);
      assert.deepEqual(
        commits.map(({ side, commit, author: by, message }) => ({ side, commit, author: by, message })),
        [{ side: "added", commit: later, author: "Ada Lovelace", message: "Of 1" }],
      );
      assert.ok(Math.abs(Date.now() - Number(commits[0]?.at)) < 86_400_000);
      const text = { binary: false, cut: false };
      const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1);
      assert.deepEqual(files.toSorted(byPath), [
        { path: "a.txt", status: "changed", added: 1, removed: 1, lines: "@@ -1,2 +1,2 @@\n one\n-two\n+2\n", ...text },
        { path: "b.bin", status: "changed", added: null, removed: null, binary: true, lines: null, cut: false },
        { path: "gone", status: "deleted", added: 0, removed: 1, lines: "@@ -1 +0,0 @@\n-x\n", ...text },
        {
          path: odd,
          status: "added",
          added: 2,
          removed: 0,
          lines: "@@ -0,0 +1,2 @@\n+diff --git a b\n+@@ x\n",
          ...text,
        },
      ]);
      assert.equal(complete, true);
      assert.deepEqual(
        (await between(later, base)).commits.map(({ side }) => side),
        ["removed"],
      );
      assert.deepEqual(
        (await between(base, later, { path: odd })).files.map(({ path }) => path),
        [odd],
      );
      // A path is a path, neither a pattern nor git's own syntax.
      for (const path of ["*", ":/", ":(glob)**", "../a.txt", "/a.txt", "--output=/tmp/x"])
        assert.deepEqual((await between(base, later, { path })).files, [], path);
      assert.equal(await repositories.compare(project, { from: "4".repeat(40), to: base }, enough), null);
      assert.equal(await repositories.compare(project, { from: base, to: "4".repeat(40) }, enough), null);
    });

    test("commits are compared that two repositories have, and each is left as it was", async () => {
      const base = await treeOf({ a: "one\n" });
      const other = "prj_beside";
      const there = await repositories.ensure(other);
      const write = async (input: string) => subject.git(there, ["hash-object", "-w", "--stdin"], { input });
      const tree = await subject.git(there, ["mktree"], { input: `100644 blob ${await write("two\n")}\ta\n` });
      const later = await subject.git(there, [...author, "commit-tree", tree, "-m", "Later"]);
      for (const [place, beside] of [
        [project, other],
        [other, project],
      ] as const) {
        const change = { from: base, to: later, beside };
        const compared = await repositories.compare(place, change, enough);
        assert.equal(compared?.files[0]?.lines, "@@ -1 +1 @@\n-one\n+two\n");
        assert.deepEqual(await repositories.changedPaths(place, { ...change, quarantine: null }, 5), ["a"]);
        const counts = await repositories.countCommits(place, { ...change, quarantine: null });
        assert.deepEqual(counts, { added: 1, removed: 1 });
        assert.equal(await repositories.compare(place, { from: base, to: later }, enough), null);
      }
    });

    test("compare leaves out what is beyond its limits, and says so", async () => {
      const base = await treeOf({});
      const many = (text: string) => Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`f${index}`, text]));
      const long = `${"x".repeat(5000)}\n`;
      const later = await treeOf({ ...many("line\n".repeat(30)), wide: long }, base);
      const whole = await between(base, later);
      assert.deepEqual([whole.files.length, whole.complete], [9, true]);
      const wide = whole.files.find(({ path }) => path === "wide");
      assert.deepEqual([wide?.cut, wide?.added, (wide?.lines?.length ?? 0) < long.length], [true, 1, true]);
      const few = await between(base, later, {}, { files: 3 });
      assert.deepEqual([few.files.map(({ path }) => path), few.complete], [["f0", "f1", "f2"], false]);
      const short = await between(base, later, {}, { fileBytes: 60 });
      assert.ok(short.files.every(({ cut, lines }) => cut && (lines?.length ?? 0) <= 60));
      const budget = await between(base, later, {}, { bytes: 500 });
      assert.equal(budget.complete, false);
      assert.deepEqual(budget.files.map(({ lines }) => lines !== null).slice(0, 2), [true, true]);
      assert.deepEqual(
        budget.files.filter(({ lines }) => lines === null).every(({ cut, added }) => cut && added !== null),
        true,
      );
      const alone = await between(base, later, { path: "f7" }, { bytes: 500 });
      assert.deepEqual(
        alone.files.map(({ lines, cut }) => [lines?.split("\n").length, cut]),
        [[32, false]],
      );
      const next = await treeOf(many("other\n"), later);
      const one = await between(base, next, {}, { commits: 1 });
      assert.deepEqual([one.commits.map(({ commit }) => commit), one.complete], [[next], false]);
    });

    test("compare shows a file that became a link, and one that git would take for a submodule", async () => {
      const [text, target] = [await blob("file\n"), await blob("other")];
      const from = await commit(`100644 blob ${text}\ta\n100644 blob ${text}\tb\n`);
      const to = await commit(`120000 blob ${target}\ta\n160000 commit ${"5".repeat(40)}\tb\n100644 blob ${text}\tc\n`);
      const { files } = await between(from, to);
      assert.deepEqual(
        files.map(({ path, status, lines }) => [path, status, lines?.match(/^[-+].*/gm)]),
        [
          ["a", "changed", ["-file", "+other"]],
          ["b", "changed", ["-file", `+Subproject commit ${"5".repeat(40)}`]],
          ["c", "added", ["+file"]],
        ],
      );
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

    /** Creates a commit from files without git; `more` overrides the defaults. */
    const write = (content: NewCommit["content"], more: Partial<NewCommit> = {}) =>
      repositories.write(project, {
        ...{ parent: null, base: null, removed: [], message: "Uploaded", author: "ada" },
        ...more,
        content,
        limits: { ...limits, archiveBytes: 10 * 1024 * 1024, ...more.limits },
      });
    const archived = (...members: Parameters<typeof tarOf>) => ({ archive: Readable.from([tarOf(...members)]) });
    async function written(...given: Parameters<typeof write>): Promise<string> {
      const made = await write(...given);
      assert.ok(made.outcome === "written", JSON.stringify(made));
      await repositories.pin(project, "upload", made.commit, made.quarantine);
      await repositories.discard(project, made.quarantine);
      return made.commit;
    }
    const listed = async (id: string) =>
      (await git(["ls-tree", "-r", id])).split("\n").map((line) => line.replace(/ blob \w+\t/, " "));

    test("an archive becomes a commit: bytes, executable files and links inside of it as they are", async () => {
      const bytes = Buffer.from([0, 255, 10, 13]);
      const members = archived(
        { path: "./", type: "Directory", mode: 0o755 },
        { path: "./bin/start", text: "#!/bin/sh\n", mode: 0o755 },
        { path: "./picture.bin", text: bytes },
        { path: "lib/current", type: "SymbolicLink", linkpath: "../bin/start" },
        { path: "again.bin", type: "Link", linkpath: "./picture.bin" },
      );
      const id = await written(members);
      assert.deepEqual(await listed(id), [
        "100644 again.bin",
        "100755 bin/start",
        "120000 lib/current",
        "100644 picture.bin",
      ]);
      assert.deepEqual(await repositories.read(project, id, { path: "picture.bin", maxBytes: 4 }), bytes);
      assert.equal(await repositories.read(project, id, { path: "picture.bin", maxBytes: 3 }), null);
      assert.equal(await repositories.read(project, id, { path: "lib/current", maxBytes: 99 }), null);
      assert.equal(await repositories.read(project, id, { path: "bin", maxBytes: 99 }), null);
      assert.equal((await repositories.read(project, id, { path: "bin/start", maxBytes: 99 }))?.length, 10);
      assert.deepEqual((await repositories.files(project, id, 2))[1], {
        path: "bin/start",
        size_bytes: 10,
        executable: true,
      });
      assert.equal(await git(["log", "-1", "--format=%an %cn %s", id]), "ada ada Uploaded");
      assert.equal(await repositories.pinned(project, "upload"), id);
    });

    test("a gzip archive is read like a plain one, and may stand on a parent", async () => {
      const parent = await written(archived({ path: "a", text: "a" }));
      const id = await written({ archive: Readable.from([gzipSync(tarOf({ path: "b", text: "b" }))]) }, { parent });
      assert.deepEqual(await listed(id), ["100644 b"]);
      assert.equal(await repositories.parentOf(project, id), parent);
      assert.equal(await repositories.parentOf(project, parent), null);
    });

    test("named files change, named files and folders go, and the rest of the base stays", async () => {
      const text = (path: string, content: string) => ({ path, content: Buffer.from(content) });
      const base = await written(
        archived(
          { path: "run", text: "1", mode: 0o755 },
          { path: "old/a", text: "a" },
          { path: "old/b", text: "b" },
          { path: "kept", text: "k" },
        ),
      );
      const id = await written(
        { files: [text("run", "2"), text("kept/now-a-folder", "x")] },
        { base, parent: base, removed: ["old"] },
      );
      assert.deepEqual(await listed(id), ["100644 kept/now-a-folder", "100755 run"]);
      const missing = await write({ files: [] }, { base, removed: ["never-there"] });
      assert.ok(missing.outcome === "refused" && missing.summary.includes("never-there"), JSON.stringify(missing));
    });

    test("a commit that was not pinned leaves nothing", async () => {
      const made = await write(archived({ path: "a", text: "not kept" }));
      assert.ok(made.outcome === "written");
      await repositories.discard(project, made.quarantine);
      assert.equal(await repositories.parentOf(project, made.commit), null);
      await assert.rejects(git(["cat-file", "-e", made.commit]));
      assert.deepEqual(
        (await readdir(join(dir, "objects"))).filter((name) => name.startsWith("incoming-upload-")),
        [],
      );
    });

    const gitmodules = '[submodule "../../x"]\n\tpath = x\n\turl = --upload-pack=touch\n';
    const hostile: readonly (readonly [string, Parameters<typeof tarOf>, RegExp])[] = [
      ["an absolute path", [{ path: "/etc/passwd", text: "x" }], /is absolute/],
      ["a path that leads out", [{ path: "a/../../b", text: "x" }], /leads out/],
      ["git's own folder", [{ path: "a/.GIT/config", text: "x" }], /git's own folder/],
      ["a disguise of git's own folder", [{ path: "git~1/config", text: "x" }], /does not accept the path/],
      [
        "a link that leads out",
        [{ path: "l", type: "SymbolicLink", linkpath: "../../etc" }],
        /leads out of the source/,
      ],
      ["an absolute link", [{ path: "l", type: "SymbolicLink", linkpath: "/etc" }], /leads out of the source/],
      ["a hard link to what is not there", [{ path: "l", type: "Link", linkpath: "etc/passwd" }], /does not contain/],
      ["a device", [{ path: "d", type: "CharacterDevice", devmaj: 1, devmin: 3 }], /not a file, folder or link/],
      ["a pipe", [{ path: "d", type: "FIFO" }], /not a file, folder or link/],
      ["a .gitmodules that attacks who clones", [{ path: ".gitmodules", text: gitmodules }], /git refuses/],
      ["an empty archive", [], /no file|not a readable/],
    ];
    for (const [what, members, expected] of hostile) {
      test(`an archive with ${what} is refused and leaves nothing`, async () => {
        const made = await write(archived(...members));
        assert.ok(made.outcome === "refused", `${what} was taken`);
        assert.equal(made.code, "invalid");
        assert.match(made.summary, expected);
        assert.deepEqual(
          (await readdir(join(dir, "objects"))).filter((name) => name.startsWith("incoming-upload-")),
          [],
        );
      });
    }

    test("what is too large is refused: as it comes, unpacked, or by its number of files", async () => {
      const bomb = () =>
        Readable.from([gzipSync(Buffer.concat([tarOf({ path: "a", text: Buffer.alloc(4_000_000) })]))]);
      const files = Array.from({ length: 12 }, (_, index) => ({ path: `f${index}`, text: "x" }));
      const cases = [
        [{ archive: bomb() }, { ...limits, bytes: 1_000_000, archiveBytes: 10_000_000 }],
        [archived({ path: "a", text: Buffer.alloc(50_000) }), { ...limits, archiveBytes: 10_000 }],
        [archived(...files), { ...limits, entries: 10, archiveBytes: 100_000 }],
      ] as const;
      for (const [content, within] of cases) {
        const made = await write(content, { limits: within });
        assert.ok(made.outcome === "refused" && made.code === "too_large", JSON.stringify(made));
      }
    });

    /** Members of an archive: a file with a path that is longer than a header has room for (pax(1)). */
    const longPath = (path: string) => {
      const record = (bytes: number) => `${bytes} path=${path}\n`;
      const bytes = Buffer.byteLength(record(0)) - 1;
      const length = bytes + `${bytes + `${bytes}`.length}`.length;
      return [
        { path: "pax", type: "ExtendedHeader", text: record(length) },
        { path: "x", text: "x" },
      ] as const;
    };

    test(
      "paths that are too long together are refused, and strange ones in no time worth mentioning",
      { timeout: 60_000 },
      async () => {
        const folders = `${"n".repeat(200)}/`.repeat(19);
        const members = Array.from({ length: 9000 }, (_, index) => longPath(`${folders}${index}`)).flat();
        const within = { ...limits, archiveBytes: 256 * 1024 ** 2 };
        const together = await write(archived(...members), { limits: within });
        assert.ok(together.outcome === "refused" && together.code === "too_large", JSON.stringify(together));
        assert.match(together.summary, /^The paths of the archive's files .* together/, "before they are stored");
        const slashes = await write(archived(...longPath(`a${"/".repeat(400_000)}b`)), { limits: within });
        assert.ok(slashes.outcome === "refused" && slashes.code === "invalid", JSON.stringify(slashes).slice(0, 300));
      },
    );

    test("what is no archive, or ends in its middle, is refused", async () => {
      const whole = tarOf({ path: "a", text: Buffer.alloc(5000) });
      const damaged = [Buffer.from("{}"), Buffer.alloc(0), whole.subarray(0, 3000), gzipSync(whole).subarray(0, 20)];
      for (const bytes of damaged) {
        const made = await write({ archive: Readable.from([bytes], { objectMode: false }) });
        assert.ok(made.outcome === "refused" && made.code === "invalid", `${bytes.length}: ${JSON.stringify(made)}`);
      }
    });
  });
}
