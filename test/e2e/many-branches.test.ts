// Drawn with other operation files: it starts a whole platform, which takes too long for every run.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Result } from "../../src/contract/routes.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { notesApp } from "./apps.ts";
import { createApp, startPlatform, type TestPlatform } from "./platform.ts";
import { killProcesses, processesNaming } from "./processes.ts";

const slugs = Array.from({ length: runsAll ? 10 : 2 }, (_, n) => `shop-${n}`);
const names = Array.from({ length: 5 }, (_, n) => `branch-${n}`);
const all = slugs.flatMap((slug) => names.map((name) => [slug, name] as const));

let platform: TestPlatform;
const at = (slug: string) => `/v1/projects/${slug}/database`;

before(async () => {
  platform = await startPlatform({ BERTH_READS_PER_MINUTE: "1000000" });
  for (const slug of slugs) {
    assert.equal((await platform.call("POST", "/v1/projects", { slug, name: slug })).status, 201);
    assert.equal((await platform.call("POST", at(slug))).status, 201);
  }
  const app = await createApp(platform, "front", notesApp);
  assert.equal((await platform.call("POST", at("front"))).status, 201);
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.equal((await platform.visit("front", "/add")).body, "rows 1 file kept");
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
const answers = async (slug: string, branch: string) => {
  const asked = { sql: "select 1", branch };
  const { body } = await platform.call<{ rows?: unknown[][] }>("POST", `${at(slug)}/query`, asked);
  return isDeepStrictEqual(body.rows, [[1]]);
};
/** Returns when the database servers of branches, or of projects, started, in ticks since the machine did (proc(5): field 22). */
const starts = (kind: "dbb_" | "dbs_") =>
  processesNaming(`${platform.dataDir}/databases/${kind}`)
    .filter(({ commandLine }) => /^\S+\/bin\/postgres -D /.test(commandLine))
    .map(({ pid }) => Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19]));
const folders = () => readdirSync(join(platform.dataDir, "databases")).filter((name) => name.startsWith("dbb_"));

test(`a platform killed while ${all.length} branches are made has all of them afterwards, and nothing else`, async () => {
  for (const [slug, name] of all)
    void platform.call("POST", `${at(slug)}/branches`, { name }).catch(() => "the platform was killed");
  await eventually(async () => (await listed()).length === all.length, "all are asked for");
  for (let kills = 0; kills < 2; kills += 1) {
    const ready = async () => (await listed()).filter(({ status }) => status === "ready").length;
    const next = Math.min((await ready()) + 1, all.length);
    await eventually(async () => (await ready()) >= next, "one more is ready");
    await sleep(Math.random() * 500);
    await platform.end("SIGKILL");
    await platform.restart();
  }
  await eventually(async () => (await listed()).every(({ status }) => status === "ready"), "all are ready");
  assert.equal((await listed()).length, all.length);
  assert.equal(folders().length, all.length);
  for (const [slug, branch] of all) assert.ok(await answers(slug, branch), `${slug} ${branch}`);
});

test("after a restart of the machine production answers first, then every branch, also when that is interrupted", async () => {
  for (const killed of ["the machine", "the platform while branches recover"]) {
    if (killed !== "the machine") await eventually(() => starts("dbb_").length > 0, "a branch has started");
    await platform.end("SIGKILL");
    if (killed === "the machine") killProcesses(processesNaming(platform.dataDir));
    await platform.restart();
    await eventually(async () => (await platform.visit("front")).body === "rows 1 file kept", "production answers");
  }
  for (const [slug, branch] of all) await eventually(() => answers(slug, branch), `${slug} ${branch} answers`);
  assert.deepEqual([starts("dbs_").length, starts("dbb_").length], [slugs.length + 1, all.length]);
  assert.ok(Math.max(...starts("dbs_")) < Math.min(...starts("dbb_")), "the databases of projects started first");
  for (const [slug, name] of all)
    assert.equal((await platform.call("DELETE", `${at(slug)}/branches/${name}`)).status, 204);
  await eventually(() => folders().length === 0, "no folder is left");
  assert.deepEqual(processesNaming(`${platform.dataDir}/databases/dbb_`), []);
});
