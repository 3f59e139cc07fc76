import assert from "node:assert/strict";
import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { BuildRefused } from "../detection/failures.ts";
import { createBuildLog } from "./build-log.ts";
import { makeStoragePlace } from "./storage-place.ts";

test("the place of the persistent folder is made in the application's folder, never by way of a link or over a file", () => {
  const app = testFolder("storage-place");
  const lines: string[] = [];
  const make = (storage: string) =>
    makeStoragePlace(
      createBuildLog((line) => lines.push(line), []),
      app,
      storage,
    );
  make("/app/var/uploads");
  make("/data");
  assert.ok(statSync(join(app, "var/uploads")).isDirectory());
  assert.deepEqual(lines, []);
  mkdirSync(join(app, "kept"));
  writeFileSync(join(app, "kept/file"), "x");
  make("/app/kept");
  assert.match(lines.join(), /kept of the repository is hidden/);
  const outside = testFolder("storage-outside");
  symlinkSync(outside, join(app, "link"));
  for (const storage of ["/app/link/in", "/app/link", "/app/kept/file", "/usr/share/data", "/etc/x", "/opt/node/x"])
    assert.throws(
      () => make(storage),
      (error) => error instanceof BuildRefused && error.code === "storage_path_unusable",
    );
  assert.throws(() => make("/app/kept/file/in"), /asks: kept\/file is no folder\.$/);
  assert.ok(!existsSync(join(outside, "in")));
});
