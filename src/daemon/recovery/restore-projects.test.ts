import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testBuild, testProject } from "../../../test/support/fixtures.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { runtimeDouble } from "../../../test/support/port-doubles.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { testApi, testOrganization } from "../../../test/support/test-platform.ts";
import { FilesRefused } from "../../kit/folder-tar.ts";
import { restoreProjects, type RestoredPart } from "./restore-projects.ts";

const api = await testApi();
after(() => api.close());
const org = await testOrganization(api.platform.db, "acme");

test("a repository that the backup lacks is named as lost, unless nothing was ever pushed", async () => {
  const pushed = await testProject(api.platform, org);
  await testProject(api.platform, org);
  await testBuild(api.platform, { org_id: org.id, project_id: pushed.id }, { status: "succeeded" });
  const parts: RestoredPart[] = [];
  await restoreProjects(platformBeside(api, {}), testFolder("no-repositories"), (part) => parts.push(part));
  assert.deepEqual(
    parts.map(({ subject, part, problem }) => [subject, part, problem?.split(":")[0]]),
    [[`acme/${pushed.slug}`, "repository", "It is not in the backup"]],
  );
});

test("a full disk ends a restore, which would lose the rest part by part", async () => {
  const { id: project_id } = await testProject(api.platform, org);
  const use = { project_id, org_id: org.id, storage_bytes: 4096, next_at: new Date() };
  await api.platform.db.insertInto("disk_use").values(use).execute();
  const full = new FilesRefused("tar: ./kept: No space left on device");
  const runtime = runtimeDouble({ writeStorage: () => Promise.reject(full) });
  const platform = platformBeside(api, { ports: { runtime } });
  await assert.rejects(
    restoreProjects(platform, testFolder("full"), () => {}),
    /No space left/,
  );
});
