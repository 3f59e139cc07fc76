import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { sql } from "kysely";
import { builderDouble } from "../../../test/support/port-doubles.ts";
import { tarOf } from "../../../test/support/tar.ts";
import { testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { createLocalRepositories } from "../../adapters/repositories-local/local-repositories.ts";
import { silentLog } from "../../kit/log.ts";

const dir = testFolder("source");
const repositories = await createLocalRepositories({ dir, log: silentLog });
let images: readonly string[] = [];
const builder = builderDouble({ images: async () => images });
const api = await sharedApi({ ports: { repositories, builder } });
const org = await testOrganization(api.database.db, "acme");

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

test("a dry run of every way to deploy over the API names the release command and what it may reach", async () => {
  const { project, put } = await fresh();
  assert.equal((await put(archive())).status, 201);
  const { db } = api.database;
  const owner = { org_id: org.id, project_id: project.id };
  const [build] = await db.selectFrom("build").selectAll().where("project_id", "=", project.id).execute();
  await db.updateTable("build").set({ status: "succeeded" }).where("project_id", "=", project.id).execute();
  const id = await testDeployment(api.platform, owner, { build_id: build?.id ?? "", number: 1, status: "active" });
  await sql`update deployment set commit = ${build?.commit}, image = image || '{"release_command": "./migrate"}' where id = ${id}`.execute(
    db,
  );
  const token = org.owner;
  const at = `/v1/projects/${project.slug}`;
  const ways = [
    await api.call("POST", `${at}/deployments?dry_run=true`, { token, body: {} }),
    await api.call("PUT", `${at}/source?dry_run=true`, { token, body: archive() }),
    await api.call("PATCH", `${at}/source?dry_run=true`, { token, body: { files: [{ path: "a.txt", text: "3" }] } }),
  ];
  for (const { status, body, text } of ways) {
    assert.equal(status, 200, text);
    const { detail } = body["would_change"] as { detail: Record<string, unknown> };
    assert.deepEqual([detail["release_command"], detail["release_reaches"]], ["./migrate", ["database", "storage"]]);
  }
});

interface PlanBody {
  readonly [field: string]: unknown;
  readonly failure: { readonly code: string } | null;
}

/** Plans a project's source by POST and PUT; each plan must leave no build and no object. */
async function planner() {
  const { project, patch, put, builds } = await fresh();
  const path = `/v1/projects/${project.slug}/plan`;
  const token = org.member;
  const plan = async (method: "POST" | "PUT", body: unknown) => {
    const before = (await builds()).length;
    const { status, body: planned, text } = await api.call(method, path, { token, body });
    assert.equal(status, 200, text);
    assert.equal((await builds()).length, before);
    const objects = await readdir(join(dir, project.id, "objects"));
    assert.deepEqual(
      objects.filter((name) => name.startsWith("incoming")),
      [],
    );
    return planned as unknown as PlanBody;
  };
  return { project, plan, patch, put, builds, path, token };
}

const jsonFile = (path: string, content: unknown) => ({ path, text: JSON.stringify(content) });

test("a plan shows what berth.json says, what the project's settings overrule, and what cron jobs become", async () => {
  const { project, plan } = await planner();
  const { db } = api.database;
  await db.updateTable("project").set({ port: 5000, replicas: 2 }).where("id", "=", project.id).execute();
  await api.call("PUT", `/v1/projects/${project.slug}/cron/tick`, {
    token: org.owner,
    body: { schedule: "* * * * *", path: "/tick" },
  });
  const crons = [
    { path: "/tick", schedule: "0 * * * *" },
    { path: "/new", schedule: "0 0 * * *" },
  ];
  const example = { path: ".env.example", text: "# KEEP=1\nAPI_KEY=\nexport DATABASE_URL=postgres://\nPORT=1\n" };
  const files = [jsonFile("berth.json", { port: 4000, health_path: "/up", crons }), example];
  const planned = await plan("POST", { files });
  const { outcome, commit, port, health_path, overruled, missing_variables, berth_file } = planned;
  assert.deepEqual([outcome, commit, port, health_path, berth_file], ["deploys", null, 5000, "/up", "berth.json"]);
  assert.deepEqual(overruled, [{ setting: "port", used: "5000", in_file: "4000" }]);
  assert.deepEqual(planned["crons"], [
    { name: "tick", ...crons[0], command: null, change: "changed" },
    { name: "new", ...crons[1], command: null, change: "created" },
  ]);
  assert.deepEqual(missing_variables, ["API_KEY", "DATABASE_URL"]);
  const [web] = planned["processes"] as { type: string; replicas: number }[];
  assert.deepEqual([web?.type, web?.replicas], ["web", 2]);
});

test("a plan says what would fail before the build begins", async () => {
  const { plan } = await planner();
  for (const [file, code] of [
    [{ path: "berth.json", text: "{ nonsense" }, "berth_file_invalid"],
    [jsonFile("berth.json", { root: "gone" }), "root_missing"],
  ] as const) {
    const { outcome, failure } = await plan("POST", { files: [file] });
    assert.deepEqual([outcome, failure?.code], ["fails", code]);
  }
});

test("an archive is planned like a push: unchanged watched paths are nothing to deploy, and it is gone afterwards", async () => {
  const { project, plan, put, builds } = await planner();
  const page = { path: "web/index.html", text: "a" };
  const watching = jsonFile("berth.json", { watch: ["web"] });
  const { body } = await put(tarOf(page, watching));
  const owner = { org_id: org.id, project_id: project.id };
  const [build] = await builds();
  const commit = String(body["commit"]);
  const made = { build_id: build?.id ?? "", number: 1, status: "active", commit } as const;
  await testDeployment(api.platform, owner, made);
  const { db } = api.database;
  const trigger = { trigger: "upload", activated_at: new Date() } as const;
  await db.updateTable("deployment").set(trigger).where("project_id", "=", project.id).execute();
  const docs = { path: "docs.md", text: "b" };
  const same = await plan("PUT", tarOf(page, watching, docs));
  assert.deepEqual([same["outcome"], same["watch"]], ["nothing_to_deploy", ["web"]]);
  const changed = await plan("PUT", tarOf({ ...page, text: "b" }, watching));
  assert.equal(changed["outcome"], "deploys");
});

test("a plan of a pushed commit names the build whose image is still there, and an unknown name is refused", async () => {
  const { project, plan, put, builds, path, token } = await planner();
  const { body } = await put(tarOf({ path: "index.html", text: "a" }));
  const commit = String(body["commit"]);
  const [build] = await builds();
  const { db } = api.database;
  const image_ref = "sha256:here";
  await db
    .updateTable("build")
    .set({ status: "succeeded", image_ref })
    .where("id", "=", build?.id ?? "")
    .execute();
  images = [image_ref];
  await repositories.moveRef(project.id, "refs/heads/main", null, commit);
  for (const ref of ["main", commit, undefined]) {
    const planned = await plan("POST", ref === undefined ? {} : { ref });
    assert.equal(planned["commit"], commit);
    assert.deepEqual((planned["build"] as PlanBody)["earlier_build"], { number: 1, image_ref });
  }
  images = [];
  assert.equal(((await plan("POST", { ref: "main" }))["build"] as PlanBody)["earlier_build"], null);
  for (const ref of ["gone", "a".repeat(40), "-x", "main~1", "refs/../x"])
    assert.equal((await api.call("POST", path, { token, body: { ref } })).status, 409, ref);
});

/** A project whose second upload was live until a rollback to the first. */
async function rolledBack() {
  const made = await fresh();
  const { project, put, patch } = made;
  const owner = { org_id: org.id, project_id: project.id };
  const { db } = api.database;
  const commits: string[] = [];
  const live = async ({ body }: Awaited<ReturnType<typeof put>>, number: number) => {
    const [build_id, commit] = [String(body["build_id"]), String(body["commit"])];
    commits.push(commit);
    await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", build_id).execute();
    const id = await testDeployment(api.platform, owner, { build_id, number, status: "retired" });
    await db
      .updateTable("deployment")
      .set({ commit, trigger: "upload", activated_at: new Date() })
      .where("id", "=", id)
      .execute();
    await repositories.moveRef(project.id, "refs/heads/main", commits.at(-2) ?? null, commit);
    return build_id;
  };
  const build_id = await live(await put(archive()), 1);
  await live(await patch({ files: [{ path: "a.txt", text: "second" }] }), 2);
  const id = await testDeployment(api.platform, owner, { build_id, number: 3, status: "active" });
  const [first = "", second = ""] = commits;
  await db
    .updateTable("deployment")
    .set({ commit: first, trigger: "rollback", activated_at: new Date() })
    .where("id", "=", id)
    .execute();
  return { ...made, first, second };
}

test("after a rollback the project, its files, a plan and a change say that the branch is ahead of what serves", async () => {
  const { project, read, patch, first, second } = await rolledBack();
  const says = (deploy: string, what = "1 commit") => ({
    ...{ branch: "main", commit: second, serves: { number: 3, commit: first } },
    commits: what === "1 commit" ? 1 : null,
    text: `main is ahead of what serves: #3 serves ${first.slice(0, 7)}; ${deploy} brings back ${what}.`,
  });
  const get = async (path: string) => (await api.call("GET", path, { token: org.member })).body;
  assert.deepEqual((await get(`/v1/projects/${project.slug}`))["ahead"], says("the next deploy", "its newer commits"));
  assert.deepEqual((await read())["ahead"], says("the next deploy"));
  const plan = (body: unknown) => api.call("POST", `/v1/projects/${project.slug}/plan`, { token: org.member, body });
  assert.deepEqual((await plan({})).body["ahead"], says("this deploy"));
  assert.equal((await plan({ ref: first })).body["ahead"], null);
  const changed = await patch({ files: [{ path: "c.txt", text: "c" }] });
  assert.deepEqual([changed.body["base"], changed.body["ahead"]], [second, says("this deploy")]);
});

test("a change may begin at what serves, and names the commit that it expects; of two with the same one only the first is accepted", async () => {
  const { read, patch, first, second } = await rolledBack();
  assert.equal((await read("?path=a.txt&commit=live"))["text"], "a");
  assert.equal((await read(`?path=a.txt&commit=${first}`))["text"], "a");
  assert.equal((await read("?path=a.txt"))["text"], "second");
  assert.equal((await read(`?commit=${"1".repeat(40)}`))["code"], "not_found");
  const refused = await patch({ files: [{ path: "c", text: "c" }], expected_commit: first });
  assert.deepEqual([refused.status, refused.body["code"]], [409, "branch_moved"]);
  for (const commit of [first, second]) assert.match(refused.text, new RegExp(commit));
  const change = (text: string, expected_commit: string, base?: string) =>
    patch({ files: [{ path: "c.txt", text }], expected_commit, base });
  const both = await Promise.all([change("one", second), change("two", second)]);
  assert.deepEqual(
    both.map(({ status }) => status).toSorted((one, other) => one - other),
    [201, 409],
  );
  const undone = await change("kept", first, "live");
  assert.deepEqual([undone.status, undone.body["base"], undone.body["ahead"]], [201, first, null], undone.text);
  assert.equal((await read("?path=a.txt"))["text"], "a");
});

test("a path that is no file's is missing, however it is spelled", async () => {
  const { put, read } = await fresh();
  await put(archive());
  for (const path of [
    "../x",
    "..",
    "/etc/passwd",
    "a%00b",
    ":(top)a.txt",
    ":!a",
    "a.txt/../a.txt",
    "./a.txt",
    "a.txt/",
    "*",
  ])
    assert.equal((await read(`?path=${path}`))["code"], "not_found", path);
});

test("an upload that comes while another one is in progress continues it", async () => {
  const { put, patch, project } = await fresh();
  const first = (await put(archive())).body;
  const second = (await patch({ files: [{ path: "c.txt", text: "c" }] })).body;
  assert.equal(await repositories.parentOf(project.id, String(second["commit"])), first["commit"]);
});
