import assert from "node:assert/strict";
import { test } from "node:test";
import { testFolder } from "../../../test/support/test-folder.ts";
import { createLocalRepositories } from "../../adapters/repositories-local/local-repositories.ts";
import { silentLog } from "../../kit/log.ts";
import { readSourceSettings } from "./read-source-settings.ts";
import { watchedPatterns } from "./rules.ts";

const repositories = await createLocalRepositories({ dir: testFolder("workspace"), log: silentLog });
await repositories.ensure("prj_a");

/** Returns what is built of these files for the application in `apps/web`, and whose changes deploy it. */
async function placeOf(files: Readonly<Record<string, string>>) {
  const written = await repositories.write("prj_a", {
    ...{ parent: null, base: null, removed: [], message: "m", author: "a" },
    content: { files: Object.entries(files).map(([path, text]) => ({ path, content: Buffer.from(text) })) },
    limits: { entries: 100, bytes: 1e6, archiveBytes: 1e6 },
  });
  assert.ok(written.outcome === "written");
  const { commit, quarantine } = written;
  const read = await readSourceSettings(repositories, { project_id: "prj_a", commit, root: "apps/web", quarantine });
  assert.ok(read.outcome === "read");
  return [read.folder, read.member, watchedPatterns(null, read.file, read.folder)];
}

const inWorkspace = ["", "apps/web", null];
const alone = ["apps/web", undefined, ["apps/web/**"]];
const web = { "package.json": "{}", "apps/web/package.json": "{}" };
const listed = (patterns: unknown) => JSON.stringify({ workspaces: patterns });

test("a folder that the workspace around it lists is built in that workspace, and any change of it deploys", async () => {
  const pnpm = "packages:\n  # ours\n  - 'apps/*' # all\n\n  - packages/*\ncatalog:\n  react: 19\n";
  assert.deepEqual(await placeOf({ ...web, "pnpm-workspace.yaml": pnpm }), inWorkspace);
  assert.deepEqual(await placeOf({ ...web, "package.json": listed(["apps/**"]) }), inWorkspace);
  assert.deepEqual(await placeOf({ ...web, "package.json": listed({ packages: ["./apps/web/"] }) }), inWorkspace);
});

test("a folder that no workspace lists, or that is an application by itself, is built alone", async () => {
  const around = { ...web, "package.json": listed(["apps/*"]) };
  for (const files of [
    web,
    { ...web, "package.json": listed(["packages/*"]) },
    { ...web, "package.json": listed(["apps/*", "!apps/web"]) },
    { ...web, "package.json": "{" },
    { ...web, "pnpm-workspace.yaml": "packages: [\n" },
    { "package.json": listed(["apps/*"]), "apps/web/index.html": "" },
    { ...around, "apps/web/package-lock.json": "{}" },
    { ...around, "apps/web/Dockerfile": "FROM scratch" },
    { ...around, "apps/web/requirements.txt": "" },
    { ...around, "apps/web/berth.json": '{ "dockerfile": "Dockerfile.prod" }' },
  ])
    assert.deepEqual(await placeOf(files), alone, JSON.stringify(files));
});
