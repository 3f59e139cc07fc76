import assert from "node:assert/strict";
import { mkdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { attempt, imageOf } from "../../ports/builder.suite.ts";
import { keptInstalls } from "./steps/installs.ts";
import { openSpares } from "./steps/spares.ts";
import { openTrash } from "./steps/trash.ts";
import { makeTestBuilder, visit, type TestBuilder } from "../../../test/support/process-builder.ts";

const app = {
  Procfile: "web: node serve.js\n",
  "serve.js": `require("http").createServer((_, res) => res.end("whole")).listen(process.env.PORT, process.env.HOST);\n`,
};

describe("what tools keep between builds", () => {
  let test: TestBuilder;
  before(async () => {
    test = await makeTestBuilder({ cacheLimitBytes: 2_000_000 });
  });
  after(() => test.close());

  it("stays up to a limit, counts in the project's use of the disk, and goes beyond it", async () => {
    const { builder, options } = test;
    const keeping = async (project_id: string, bytes: number) => {
      const build = `head -c ${bytes} /dev/urandom > "$npm_config_cache.kept"`;
      imageOf((await attempt(builder, app, { project_id, commands: { build } })).outcome);
      await builder.settle();
      const kept = join(options.cachesDir, project_id, "shared", "npm.kept");
      return { kept: (await stat(kept).catch(() => null))?.size, use: (await builder.diskBytes(project_id)) ?? 0 };
    };
    const small = await keeping("prj_small", 1_000_000);
    const large = await keeping("prj_large", 3_000_000);
    assert.deepEqual([small.kept, large.kept], [1_000_000, undefined]);
    assert.ok(small.use - large.use > 900_000, `${small.use} and ${large.use}`);
  });
});

describe("after a power cut", () => {
  let test: TestBuilder;
  before(async () => {
    test = await makeTestBuilder();
  });
  after(() => test.close());

  for (const name of ["app/serve.js", "image.json"]) {
    it(`a release whose ${name} lost its content is made anew by the next push of the same source`, async () => {
      const image = imageOf((await attempt(test.builder, app)).outcome);
      const file = join(test.options.releasesDir, "prj_suite", image.image_ref.slice("sha256:".length), name);
      await truncate(file);
      const again = imageOf((await attempt(test.builder, app)).outcome);
      assert.equal(again.image_ref, image.image_ref);
      assert.notEqual(await readFile(file, "utf8"), "");
      assert.equal((await visit(test, again)).text, "whole");
    });
  }

  it("a release that is whole stays the very same when it is pushed again", async () => {
    const image = imageOf((await attempt(test.builder, app)).outcome);
    const folder = join(test.options.releasesDir, "prj_suite", image.image_ref.slice("sha256:".length));
    const { ino } = await stat(folder);
    await attempt(test.builder, app);
    assert.equal((await stat(folder)).ino, ino);
  });

  it("a kept install has its name only when all of it is on the disk, and a cut digest is none", async () => {
    const cache = join(test.root, "kept");
    const source = join(cache, "source");
    await mkdir(source, { recursive: true });
    await writeFile(join(source, "file"), "x");
    const trash = await openTrash(join(cache, "trash"));
    const { signal } = new AbortController();
    const spares = await openSpares(cache, trash);
    const kept = keptInstalls({ projectCacheDir: cache, spares, trash, signal, upkeep: signal });
    const finish = await kept.keep("key", "production", source);
    assert.equal(await kept.linkProduction("key", join(cache, "early")), false);
    await finish();
    assert.equal(await kept.linkProduction("key", join(cache, "target")), true);
    await kept.keepHashed("key", { digest: "d 1", sizeBytes: 1 });
    assert.deepEqual(await kept.hashed("key"), { digest: "d 1", sizeBytes: 1 });
    await truncate(join(cache, "installs", "key", "production.json"));
    assert.equal(await kept.hashed("key"), null);
  });
});
