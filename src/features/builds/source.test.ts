import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { tarOf } from "../../../test/support/tar.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "../../../test/support/test-platform.ts";
import { createLocalRepositories } from "../../adapters/repositories-local/local-repositories.ts";
import { silentLog } from "../../kit/log.ts";
import type { Repositories } from "../../ports/repositories.ts";

let api: TestApi;
let org: TestOrganization;
let dir: string;
let repositories: Repositories;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "berth-source-"));
  repositories = await createLocalRepositories({ dir, log: silentLog });
  api = await testApi({ ports: { repositories } });
  org = await testOrganization(api.database.db, "acme");
});
after(async () => {
  await api.close();
  await rm(dir, { recursive: true });
});

const archive = () => tarOf({ path: "a.txt", text: "a" }, { path: "b.txt", text: "b" });

async function fresh() {
  const project = await testProject(api.platform, org);
  const path = `/v1/projects/${project.slug}/source`;
  const token = org.member;
  return {
    project,
    read: async (query = "") => (await api.call("GET", `${path}${query}`, { token })).body,
    put: (body: unknown, query = "") => api.call("PUT", `${path}${query}`, { token, body }),
    patch: (body: unknown) => api.call("PATCH", path, { token, body }),
    builds: () =>
      api.database.db.selectFrom("build").selectAll().where("project_id", "=", project.id).orderBy("number").execute(),
  };
}

test("an archive becomes a queued build of a commit that names the caller, and outlives the control plane that took it", async () => {
  const { put, builds, project, read } = await fresh();
  const { status, body } = await put(archive(), "?message=By%20hand");
  assert.equal(status, 201, JSON.stringify(body));
  const [build] = await builds();
  assert.deepEqual(
    [build?.id, build?.commit, build?.origin, build?.branch, build?.message, build?.requested_by, build?.lease_owner],
    [body["build_id"], body["commit"], "upload", "main", "By hand", "test", null],
  );
  const inspected = await repositories.inspect(project.id, String(body["commit"]), null, { entries: 9, bytes: 99 });
  assert.deepEqual(inspected, { outcome: "fine", message: "By hand", author: "test", notes: [] });
  const { files } = (await read()) as { files: { path: string }[] };
  assert.deepEqual(
    files.map((file) => file.path),
    ["a.txt", "b.txt"],
  );
  assert.equal((await read("?path=b.txt"))["text"], "b");
});

test("a change begins at the newest upload, whatever became of it, until something else has moved the branch", async () => {
  const { put, patch, project, read } = await fresh();
  const first = (await put(archive())).body;
  const second = (await patch({ files: [{ path: "a.txt", text: "2" }], delete: ["b.txt"] })).body;
  assert.equal(second["base"], first["commit"]);
  const { files } = (await read()) as { files: { path: string }[] };
  assert.deepEqual(
    files.map((file) => file.path),
    ["a.txt"],
  );
  const other = await repositories.write(project.id, {
    ...{ parent: null, base: null, removed: [], message: "A push", author: "ada" },
    content: { files: [{ path: "pushed", content: Buffer.from("p") }] },
    limits: { entries: 9, bytes: 99, archiveBytes: 99 },
  });
  assert.ok(other.outcome === "written");
  await repositories.pin(project.id, "pushed", other.commit, other.quarantine);
  await repositories.moveRef(project.id, "refs/heads/main", null, other.commit);
  const third = (await patch({ files: [{ path: "c", text: "3" }] })).body;
  assert.equal(third["base"], other.commit);
});

test("what is no archive, holds a trap or names what is not there is refused and makes no build", async () => {
  const { put, patch, builds } = await fresh();
  const refused = [
    await put({ no: "archive" }),
    await put(tarOf({ path: "../evil", text: "x" })),
    await patch({ files: [{ path: ".git/config", text: "x" }] }),
    await patch({ delete: ["never-there"] }),
    await patch({}),
  ];
  for (const { status, body } of refused)
    assert.deepEqual([status, body["code"]], [400, "invalid_request"], JSON.stringify(body));
  assert.deepEqual(await builds(), []);
});

test("an upload is admitted before its body is read, and a dry run reads none", async () => {
  const { project, put, builds } = await fresh();
  const path = `/v1/projects/${project.slug}/source`;
  const body = Buffer.alloc(4 * 1024 * 1024);
  assert.equal((await api.call("PUT", path, { token: "berth_m_no", body })).status, 401);
  assert.equal((await api.call("PUT", "/v1/projects/never-made/source", { token: org.member, body })).status, 404);
  const dry = await put(body, "?dry_run=true");
  assert.deepEqual([dry.status, dry.body["would_answer"]], [200, 201]);
  assert.deepEqual(await builds(), []);
});
