import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { refuseLinkedTargets } from "./file-system.ts";

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "berth-targets-"));
  await mkdir(join(root, "deep", "folder"), { recursive: true });
  await symlink("/etc", join(root, "link"));
});
after(() => rm(root, { recursive: true, force: true }));

test("a mount never follows a link that code of the sandbox may have planted", () => {
  const mount = (target: string, writable = true) =>
    refuseLinkedTargets([
      { source: root, target: "/tmp", writable },
      { source: "/usr", target, writable: false },
    ]);
  for (const target of ["/tmp/link", "/tmp/link/ssl"]) assert.throws(() => mount(target), /a link lies on the way/);
  for (const target of ["/tmp/deep/folder", "/tmp/missing/folder", "/tmpfolder/link", "/opt/link"]) mount(target);
  mount("/tmp/link", false);
});
