import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { attempt, builderSuite, imageOf } from "../../ports/builder.suite.ts";
import { manifestName, treeName, type ReleaseManifest } from "../../ports/release-folder.ts";
import { makeTestBuilder } from "./test-builder.ts";

builderSuite("the process builder", makeTestBuilder);

test("a release says where its application expects the persistent folder, and has the place for it", async () => {
  const { builder, options, close } = await makeTestBuilder();
  try {
    const { outcome } = await attempt(builder, { "index.html": "x" }, { commands: { storage: "/app/uploads" } });
    const { image_ref } = imageOf(outcome);
    const folder = join(options.releasesDir, "prj_suite", image_ref.slice("sha256:".length));
    const manifest = JSON.parse(await readFile(join(folder, manifestName), "utf8")) as ReleaseManifest;
    assert.equal(manifest.storage, "/app/uploads");
    assert.ok((await stat(join(folder, treeName, "uploads"))).isDirectory());
  } finally {
    await close();
  }
});
