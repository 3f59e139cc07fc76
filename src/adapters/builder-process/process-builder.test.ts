import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { attempt, builderSuite, imageOf } from "../../ports/builder.suite.ts";
import { manifestName, treeName, type ReleaseManifest } from "../../ports/release-folder.ts";
import { makeTestBuilder } from "../../../test/support/process-builder.ts";

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

test("the log of a build begins with what was found and the versions of its tools, without those of a static site's server", async () => {
  const { builder, close } = await makeTestBuilder();
  try {
    const node = await attempt(builder, { "package.json": '{"scripts":{"start":"node s.js"}}', "s.js": "" });
    assert.equal(node.lines[0], "-----> Node.js app detected");
    assert.match(node.lines[1] ?? "", /^ {7}Node\.js \d+\.\d+\.\d+/);
    const { lines } = await attempt(builder, { "index.html": "x" });
    assert.ok(!lines.some((line) => /Node\.js \d/.test(line)), lines.join("\n"));
  } finally {
    await close();
  }
});
