import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  commitFile,
  git,
  makeKey,
  makeWorkTree,
  refOf,
  ScriptedGate,
  startGitHost,
  tryGit,
  type Host,
} from "../../test/support/git-servers.ts";

const gate = new ScriptedGate();
let host: Host;
let keyFile: string;
let asked = 0;

before(async () => {
  host = await startGitHost(gate, { packBytes: 8 * 1024 * 1024 });
  const key = await makeKey(host.root, "ed25519");
  gate.register(key.fingerprint);
  keyFile = key.keyFile;
  gate.receive = async () => ({ accepted: (asked += 1) > 0 });
});
after(() => host.close());

for (const way of ["HTTP", "SSH"] as const)
  describe(`a push over ${way}`, () => {
    let work: string;
    const branch = `over-${way.toLowerCase()}`;

    before(async () => {
      work = await makeWorkTree(host.root, branch);
      for (const text of ["1", "2", "3"]) await commitFile(host.root, work, "count.txt", text);
    });
    const url = () => (way === "HTTP" ? host.httpUrl() : host.sshUrl());
    // Forced, because a client whose history ends at its only commit cannot tell that it continues the branch.
    const push = (from: string) => tryGit(host.root, ["-C", from, "push", url(), `+HEAD:${branch}`], { keyFile });
    const cloneOf = async (name: string, ...options: string[]) => {
      const folder = join(host.root, `${name}-${branch}`);
      await git(host.root, ["clone", "-q", ...options, `file://${work}`, folder]);
      return folder;
    };
    /** Pushes from a clone that lacks history; the platform must refuse it before the hook. */
    const refused = async (from: string, says: RegExp) => {
      const before = [asked, await refOf(host, `refs/heads/${branch}`).catch(() => "")];
      const pushed = await push(from);
      assert.notEqual(pushed.exitCode, 0);
      assert.match(pushed.stderr, says);
      assert.deepEqual([asked, await refOf(host, `refs/heads/${branch}`).catch(() => "")], before);
    };

    test("from a shallow clone is refused before the hook while the project lacks the parents, with the way out", async () => {
      for (const depth of ["1", "2"])
        await refused(await cloneOf(`depth-${depth}`, "--depth", depth), /git fetch --unshallow/);
    });

    test("from a clone with a graft is refused before the hook", async () => {
      const grafted = await cloneOf("grafted");
      await mkdir(join(grafted, ".git/info"), { recursive: true });
      await writeFile(
        join(grafted, ".git/info/grafts"),
        `${await git(host.root, ["-C", grafted, "rev-parse", "HEAD~1"])}\n`,
      );
      await refused(grafted, /lacks objects that its commits need/);
    });

    test("from a shallow clone is accepted once the project has the parents, and the whole history can be cloned", async () => {
      assert.equal((await push(work)).exitCode, 0);
      await commitFile(host.root, work, "count.txt", "4");
      // Its history ends at a commit that the project does not have.
      const tip = await cloneOf("tip", "--depth", "1");
      const pushed = await push(tip);
      assert.equal(pushed.exitCode, 0, pushed.stderr);
      // Its history ends at a commit that the project has.
      await commitFile(host.root, tip, "count.txt", "5");
      assert.equal((await push(tip)).exitCode, 0);
      const fresh = join(host.root, `fresh-${branch}`);
      await git(host.root, ["clone", "-q", "-b", branch, url(), fresh], { keyFile });
      assert.equal(await git(host.root, ["-C", fresh, "rev-parse", "--is-shallow-repository"]), "false");
      assert.equal(await git(host.root, ["-C", fresh, "rev-list", "--count", "HEAD"]), "6");
    });

    test("from a partial clone is accepted", async () => {
      await git(host.root, ["-C", work, "config", "uploadpack.allowFilter", "true"]);
      const partial = await cloneOf("partial", "--filter=blob:none");
      assert.equal(
        (await tryGit(host.root, ["-C", partial, "push", url(), `HEAD:partial-${branch}`], { keyFile })).exitCode,
        0,
      );
    });

    test("that is too large names the limit, its setting and a way to find the largest files", async () => {
      const large = await cloneOf("large");
      await git(host.root, ["-C", large, "config", "core.compression", "0"]);
      await writeFile(join(large, "large.bin"), Buffer.alloc(10 * 1024 * 1024, 1));
      await commitFile(host.root, large, "next.txt", "next");
      await refused(
        large,
        /larger than 8 MiB, the most that this platform accepts \(a quarter of BERTH_TREE_MIB\)[^]*cat-file --batch-check/,
      );
    });
  });
