import assert from "node:assert/strict";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { refuseLinkedTargets } from "./file-system.ts";

const root = testFolder("targets");
before(async () => {
  await mkdir(join(root, "deep", "folder"), { recursive: true });
  await symlink("/etc", join(root, "link"));
});

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
