import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { beforeEach, test } from "node:test";
import { sql } from "kysely";
import { testBuild, testDeployment, testProject, testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testDiskLimits, testOrganization } from "../../../test/support/test-platform.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import {
  builderDouble,
  logStoreDouble,
  repositoriesDouble,
  runtimeDouble,
} from "../../../test/support/port-doubles.ts";
import type { Builder, BuildOutcome, BuildRequest } from "../../ports/builder.ts";
import { imagesTask } from "../images/images-task.ts";
import { buildsTask } from "./builds-task.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme", { maxProjects: 100 });

beforeEach(async () => {
  for (const table of ["deployment", "build"] as const) await api.database.db.deleteFrom(table).execute();
});

const never = new AbortController().signal;
const failed: BuildOutcome = {
  outcome: "failed",
  failure: { stage: "build", code: "build_failed", summary: "It failed.", hint: "Look above.", log_tail: [] },
};

/** The task of a control plane whose log disk is full. */
function taskWith(
  build: (request: BuildRequest) => Promise<BuildOutcome>,
  files: Readonly<Record<string, string>> = {},
  more: Partial<Builder> = {},
  repositoryBytes = 0,
) {
  const appendBuild = () => Promise.reject(new Error("ENOSPC"));
  const builder = builderDouble({
    ...more,
    build: (request) => {
      request.onLine("-----> Building");
      return build(request);
    },
  });
  const repositories = repositoriesDouble({
    diskBytes: async () => repositoryBytes,
    read: async (_, _commit, { path }) => (path in files ? Buffer.from(files[path] ?? "") : null),
    files: async (_, _commit, _limit, { folder = "" } = {}) =>
      Object.keys(files)
        .filter((path) => path.startsWith(folder))
        .map((path) => ({ path, size_bytes: 0, executable: false })),
    archive: (_, _commit, { folder = "" } = {}) => Readable.from([folder]),
  });
  const ports = { builder, logStore: logStoreDouble({ appendBuild }), repositories };
  return buildsTask(platformBeside(api, { owner: "here", ports }), () => {});
}

async function queued(row: { origin: "push" | "redeploy"; status?: "running"; lease_owner?: string; fence?: number }) {
  const { db } = api.database;
  const project = await testProject(api.platform, org);
  const id = await testBuild(api.platform, { org_id: org.id, project_id: project.id }, { status: "queued" });
  const lease_until = row.status === "running" ? sql<string>`now()` : sql<string>`now() + interval '1 minute'`;
  await db
    .updateTable("build")
    .set({ ...row, lease_until })
    .where("id", "=", id)
    .execute();
  return id;
}

async function outcomeOf(id: string) {
  const row = await api.database.db
    .selectFrom("build")
    .select(["status", "failure"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return [row.status, row.failure?.code];
}

test("a full disk for logs changes nothing of a build's outcome", async () => {
  const id = await queued({ origin: "push" });
  const task = taskWith(async () => failed);
  await task.run(never);
  await task.settle?.();
  assert.deepEqual(await outcomeOf(id), ["failed", "build_failed"]);
});

test("a build that lacks a database is told how to make one", async () => {
  const id = await queued({ origin: "push" });
  const log_tail = ["       Error: Environment variable not found: DATABASE_URL"];
  const task = taskWith(async () => ({
    ...failed,
    failure: { ...failed.failure, code: "build_script_failed", log_tail },
  }));
  await task.run(never);
  await task.settle?.();
  const { failure } = await api.database.db
    .selectFrom("build")
    .select("failure")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  assert.match(failure?.hint ?? "", /`berth db create`/);
});

test("a fault of the platform closes the build also when nothing can be logged", async () => {
  const id = await queued({ origin: "redeploy" });
  const task = taskWith(() => Promise.reject(new Error("no more processes")));
  await task.run(never);
  await task.settle?.();
  assert.deepEqual(await outcomeOf(id), ["failed", "platform_fault"]);
});

test("a build gets the application's variables, its database's included, and reaches that database", async () => {
  const { project } = await testThings(api.platform, org);
  await testBuild(api.platform, { org_id: org.id, project_id: project.id }, { status: "queued" });
  await api.database.db
    .updateTable("build")
    .set({ origin: "redeploy", lease_until: sql<string>`now() + interval '1 minute'` })
    .where("status", "=", "queued")
    .execute();
  const requests: BuildRequest[] = [];
  const task = taskWith(async (request) => (requests.push(request), failed));
  await task.run(never);
  await task.settle?.();
  const [request] = requests;
  assert.equal(request?.env["COLOUR"], "green");
  assert.equal(request.env["DATABASE_URL"], "postgresql://r:secret@127.0.0.1:5432/d");
  assert.equal(request.env["BERTH_PROJECT"], project.slug);
  assert.deepEqual(request.reach, [{ host: "/nowhere", port: 5432 }]);
  assert.ok(request.secrets.includes("secret") && !request.secrets.includes(project.slug));
});

for (const origin of ["push", "redeploy"] as const) {
  test(`a ${origin} under way here is neither closed nor taken again when its lease has run out by the database's clock`, async () => {
    const id = await queued({ origin });
    const end = Promise.withResolvers<BuildOutcome>();
    let builds = 0;
    const task = taskWith(() => ((builds += 1), end.promise));
    await task.run(never);
    await api.database.db
      .updateTable("build")
      .set({ lease_until: new Date(0) })
      .execute();
    await task.run(never);
    end.resolve(failed);
    await task.settle?.();
    assert.deepEqual([await outcomeOf(id), builds], [["failed", "build_failed"], 1]);
  });
}

test("a short disk of images refuses a build before it begins, and ends one that runs", async () => {
  const refused = await queued({ origin: "redeploy" });
  const notBuilt = () => assert.fail("it was built");
  const full = taskWith(notBuilt, {}, { isShortOfSpace: async () => true });
  await full.run(never);
  await full.settle?.();
  assert.deepEqual(await outcomeOf(refused), ["failed", "storage_full"]);
  const ended = await queued({ origin: "redeploy" });
  let looks = 0;
  // Short at the second look: the first is before the build, the third after its files are deleted.
  const untilAborted = ({ signal }: BuildRequest) =>
    new Promise<BuildOutcome>((resolve) => signal.addEventListener("abort", () => resolve({ outcome: "cancelled" })));
  const filling = taskWith(untilAborted, {}, { isShortOfSpace: async () => (looks += 1) === 2 });
  await filling.run(never);
  await filling.settle?.();
  assert.deepEqual(await outcomeOf(ended), ["failed", "storage_full"]);
});

/** A project with an image that no deployment needs; `queue` adds a redeploy of it. */
async function withOldImage() {
  const { db } = api.database;
  const { id } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: id };
  await db.updateTable("project").set({ deploy_branch: "main" }).where("id", "=", id).execute();
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "failed" });
  return {
    id,
    async queue() {
      const queuedId = await testBuild(api.platform, owner, { status: "queued" });
      await db.updateTable("build").set({ origin: "redeploy" }).where("id", "=", queuedId).execute();
    },
  };
}

/** The task that removes images, on a machine that has these images of the project. */
function imagesTaskWith(projectId: string, images: readonly string[], removeImage: () => Promise<void>) {
  const builder = builderDouble({ images: async (id) => (id === projectId ? images : []) });
  const ports = { builder, runtime: runtimeDouble({ removeImage }) };
  return imagesTask(platformBeside(api, { owner: "here", ports }));
}

test("a project over its limit of images loses its caches first, and is refused when that is not enough", async () => {
  const cleared: string[] = [];
  const limit = testDiskLimits.images_bytes;
  for (const [left, repository] of [
    [1, 1],
    [limit + 1, 0],
    [1, limit],
  ] as const) {
    const id = await queued({ origin: "redeploy" });
    const { db } = api.database;
    const build = db.selectFrom("build").select("project_id").where("id", "=", id);
    const { project_id } = await build.executeTakeFirstOrThrow();
    const use = { images_bytes: limit + 1, next_at: new Date() };
    await db
      .insertInto("disk_use")
      .values({ ...use, project_id, org_id: org.id })
      .execute();
    const clearCaches = async (project: string) => void cleared.push(project);
    const task = taskWith(async () => failed, {}, { clearCaches, diskBytes: async () => left }, repository);
    await task.run(never);
    await task.settle?.();
    assert.ok(cleared.includes(project_id));
    assert.deepEqual(await outcomeOf(id), [
      "failed",
      left + repository <= limit ? "build_failed" : "disk_limit_reached",
    ]);
  }
});

test("a build that is queued while images of its project are removed begins after that, since it may make one of them again", async () => {
  const project = await withOldImage();
  const order: string[] = [];
  const builds = taskWith(async () => (order.push("build"), failed));
  const images = imagesTaskWith(project.id, ["sha256:old"], async () => {
    await project.queue();
    await builds.run(never);
    await builds.settle?.();
    order.push("removed");
  });
  await images.run(never);
  await builds.run(never);
  await builds.settle?.();
  assert.deepEqual(order, ["removed", "build"]);
});

test("a control plane that ended while it removed images holds up no build for longer than its lease, and removes none after it", async () => {
  const { db } = api.database;
  const project = await withOldImage();
  let builds = 0;
  const task = taskWith(async () => ((builds += 1), failed));
  let removals = 0;
  const both = ["sha256:old", "sha256:older"];
  const late = imagesTaskWith(project.id, both, async () => {
    removals += 1;
    await db
      .updateTable("image_pruning")
      .set({ lease_until: new Date(0) })
      .execute();
    await project.queue();
    await task.run(never);
    await task.settle?.();
    await imagesTaskWith(project.id, both, async () => void (removals += 1)).run(never);
  });
  await late.run(never);
  assert.deepEqual([builds, removals], [1, 3]);
  assert.deepEqual(await db.selectFrom("image_pruning").select("id").execute(), []);
});

test("a redeploy whose control plane ended is built once more, and not a third time", async () => {
  const lost = { origin: "redeploy", status: "running", lease_owner: "dead" } as const;
  const first = await queued({ ...lost, fence: 1 });
  const second = await queued({ ...lost, fence: 3 });
  let builds = 0;
  const task = taskWith(async () => ((builds += 1), failed));
  await task.run(never);
  await task.settle?.();
  assert.deepEqual(
    [await outcomeOf(first), await outcomeOf(second), builds],
    [["failed", "build_failed"], ["failed", "interrupted"], 1],
  );
});

test("berth.json gives the build its folder and commands, and the deployment port, health path and cron jobs; settings win", async () => {
  const id = await queued({ origin: "push" });
  const { db } = api.database;
  await db.updateTable("project").set({ port: 5000 }).execute();
  const crons = [{ path: "/tick", schedule: "* * * * *" }];
  const file = { root: "web", build: "make", processes: { worker: "work" }, port: 4000, health_path: "/up", crons };
  const requests: BuildRequest[] = [];
  const image = {
    image_ref: "sha256:0",
    kind: "node",
    web_command: "x",
    processes: {},
    release_command: null,
    size_bytes: 0,
  };
  const task = taskWith(async (request) => (requests.push(request), { outcome: "built", image }), {
    "berth.json": JSON.stringify(file),
    "web/package.json": "{}",
  });
  await task.run(never);
  await task.settle?.();
  assert.deepEqual(await requests[0]?.source().toArray(), ["web"]);
  assert.deepEqual([requests[0]?.commands?.build, requests[0]?.commands?.processes], ["make", { worker: "work" }]);
  const build = await db.selectFrom("build").select("settings").where("id", "=", id).executeTakeFirstOrThrow();
  assert.deepEqual(build.settings, { port: 4000, health_path: "/up", crons });
  const deployment = await db
    .selectFrom("deployment")
    .select(["port", "health_path"])
    .where("build_id", "=", id)
    .executeTakeFirstOrThrow();
  assert.deepEqual(deployment, { port: 5000, health_path: "/up" });
});

test("a berth.json that cannot be read and a folder that is missing fail the build before it begins", async () => {
  for (const [text, code] of [
    ["{ nonsense", "berth_file_invalid"],
    ['{"root": "gone"}', "root_missing"],
  ] as const) {
    const id = await queued({ origin: "push" });
    const task = taskWith(() => assert.fail("it was built"), { "berth.json": text });
    await task.run(never);
    await task.settle?.();
    assert.deepEqual(await outcomeOf(id), ["failed", code]);
  }
});
