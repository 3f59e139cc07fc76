// Drawn with other operation files: it starts a whole platform, which takes too long for every run.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Result } from "../../src/contract/routes.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";
import { processesNaming } from "./processes.ts";

const slugs = Array.from({ length: runsAll ? 10 : 2 }, (_, n) => `shop-${n}`);
const names = Array.from({ length: 5 }, (_, n) => `branch-${n}`);
const all = slugs.flatMap((slug) => names.map((name) => [slug, name] as const));

let platform: TestPlatform;
const at = (slug: string) => `/v1/projects/${slug}/database`;

before(async () => {
  platform = await startPlatform();
  for (const slug of slugs) {
    assert.equal((await platform.call("POST", "/v1/projects", { slug, name: slug })).status, 201);
    assert.equal((await platform.call("POST", at(slug))).status, 201);
  }
});
after(() => platform?.destroy());

const listed = async () =>
  (
    await Promise.all(
      slugs.map(
        async (slug) => (await platform.call<Result<"branches.list">>("GET", `${at(slug)}/branches`)).body.branches,
      ),
    )
  ).flat();
const folders = () => readdirSync(join(platform.dataDir, "databases")).filter((name) => name.startsWith("dbb_"));

test(`a platform killed while ${all.length} branches are made has all of them afterwards, and nothing else`, async () => {
  for (const [slug, name] of all)
    void platform.call("POST", `${at(slug)}/branches`, { name }).catch(() => "the platform was killed");
  await eventually(async () => (await listed()).length === all.length, "all are asked for");
  for (let kills = 0; kills < 2; kills += 1) {
    const ready = async () => (await listed()).filter(({ status }) => status === "ready").length;
    const before = await ready();
    await eventually(async () => (await ready()) > before, "one more is ready");
    await sleep(Math.random() * 500);
    await platform.end("SIGKILL");
    await platform.restart();
  }
  await eventually(async () => (await listed()).every(({ status }) => status === "ready"), "all are ready");
  assert.equal((await listed()).length, all.length);
  assert.equal(folders().length, all.length);
  for (const [slug, branch] of all) {
    const asked = { sql: "select 1", branch };
    const answer = await platform.call<{ rows: unknown[][] }>("POST", `${at(slug)}/query`, asked);
    assert.deepEqual(answer.body.rows, [[1]], `${slug} ${branch}: ${JSON.stringify(answer.body)}`);
  }
  for (const [slug, name] of all)
    assert.equal((await platform.call("DELETE", `${at(slug)}/branches/${name}`)).status, 204);
  await eventually(() => folders().length === 0, "no folder is left");
  assert.deepEqual(processesNaming(`${platform.dataDir}/databases/dbb_`), []);
});
