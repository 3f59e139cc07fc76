import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { scanSource } from "./source-tree.ts";

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "berth-source-"));
});
after(() => rm(root, { recursive: true, force: true }));

/** The link that is found to escape among these, whose targets are text. */
async function escaping(name: string, links: Record<string, string>): Promise<string | null> {
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(root, name, path)), { recursive: true });
    await symlink(target, join(root, name, path));
  }
  return (await scanSource(join(root, name))).escapingLink;
}

test("a link may lead anywhere below the root", async () => {
  const links = { a: "deep/folder", "deep/up": "../a", "deep/er/top": "../..", "deep/er/self": "./x//y" };
  assert.equal(await escaping("inside", links), null);
});

test("a link may not lead above the root or be absolute", async () => {
  assert.equal(await escaping("above", { "deep/link": "../../x" }), "deep/link");
  assert.equal(await escaping("absolute", { link: "/etc/passwd" }), "link");
});

test("a link may not climb behind a name, which may be a link that is not as deep as it looks", async () => {
  assert.equal(await escaping("climbing", { s: ".", "t/out": "../s/s/s/../../../etc/x" }), "t/out");
});
