import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { builderDouble, logStoreDouble, runtimeDouble } from "../../../test/support/port-doubles.ts";
import type { LogStore } from "../../ports/log-store.ts";
import type { OneOffResult, Runtime } from "../../ports/runtime.ts";
import { releasesTask } from "./releases-task.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme", { maxProjects: 100 });

beforeEach(async () => {
  for (const table of ["replica", "deployment"] as const) await api.database.db.deleteFrom(table).execute();
});

const never = new AbortController().signal;
const refused: OneOffResult = { outcome: "exited", code: 1, out_of_memory: false };
const stored: LogStore["appendBuild"] = async () => {};
const full: LogStore["appendBuild"] = async () => {
  throw new Error("ENOSPC");
};

/** The task of a control plane whose applications have only a release command. */
function taskWith(
  runOnce: () => Promise<OneOffResult>,
  appendBuild = stored,
  more: Partial<Runtime> = {},
  images = ["sha256:0"],
) {
  const builder = builderDouble({ images: async () => images });
  const ports = { builder, runtime: runtimeDouble({ runOnce, ...more }), logStore: logStoreDouble({ appendBuild }) };
  return releasesTask(platformBeside(api, { owner: "here", ports }), () => {});
}

async function deployment(row: {
  trigger: "push" | "redeploy" | "rollback" | "variables";
  status?: "starting";
  lease_owner?: string;
  fence?: number;
}) {
  const { db } = api.database;
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "pending" });
  const image = { image_ref: "sha256:0", kind: "node", web_command: "", release_command: "migrate", size_bytes: 0 };
  const lease = row.lease_owner === undefined ? {} : { lease_until: new Date(0) };
  await db
    .updateTable("deployment")
    .set({ image: JSON.stringify(image), ...lease, ...row })
    .where("id", "=", id)
    .execute();
  return id;
}

const rowOf = (id: string) =>
  api.database.db
    .selectFrom("deployment")
    .select(["status", "failure", "lease_owner"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
/** Ages the leases, as when the machine slept and the database's clock went on. */
const letLeasesRunOut = () =>
  api.database.db
    .updateTable("deployment")
    .set({ lease_until: new Date(0) })
    .execute();

async function outcomeOf(id: string) {
  const { status, failure } = await rowOf(id);
  return [status, failure?.code];
}

test("a full disk for logs changes nothing of the outcome, and the release command runs once", async () => {
  const id = await deployment({ trigger: "push" });
  let runs = 0;
  const task = taskWith(async () => ((runs += 1), refused), full);
  await task.run(never);
  await task.settle?.();
  assert.deepEqual([await outcomeOf(id), runs], [["failed", "release_failed"], 1]);
});

for (const trigger of ["rollback", "variables"] as const) {
  test(`the release command does not run for the trigger ${trigger}, because no build precedes it`, async () => {
    const id = await deployment({ trigger });
    let runs = 0;
    // Its processes cannot start, so it ends after the place of a release command.
    const task = taskWith(async () => ((runs += 1), refused));
    await task.run(never);
    await task.settle?.();
    assert.deepEqual([...(await outcomeOf(id)), runs], ["failed", "platform_fault", 0]);
  });
}

test("a fault of the platform closes the deployment also when nothing can be logged", async () => {
  const id = await deployment({ trigger: "push" });
  const task = taskWith(() => Promise.reject(new Error("no more processes")), full);
  await task.run(never);
  await task.settle?.();
  assert.deepEqual(await outcomeOf(id), ["failed", "platform_fault"]);
});

const engine = { part: "engine", effect: "The engine does not answer.", remedy: "Start it" };

test("a deployment waits while its runtime's engine does not answer, and says so", async () => {
  const id = await deployment({ trigger: "push" });
  const lines: string[] = [];
  let looks = 0;
  const unavailable = async () => ((looks += 1) < 3 ? engine : undefined);
  const task = taskWith(
    async () => refused,
    async (_id, more) => void lines.push(...more),
    { unavailable },
  );
  await task.run(never);
  await task.settle?.();
  assert.deepEqual(await outcomeOf(id), ["failed", "release_failed"]);
  assert.deepEqual(
    lines.filter((line) => line.includes("does not answer")),
    ["-----> Waiting: The engine does not answer."],
  );
});

test("an engine that ends meanwhile, and an image that is gone, are named instead of an internal error", async () => {
  let looks = 0;
  const unavailable = async () => ((looks += 1) === 1 ? undefined : engine);
  const gone = () => Promise.reject(new Error("ECONNREFUSED"));
  for (const [task, code, hint] of [
    [taskWith(gone, stored, { unavailable }), "runtime_unavailable", /Start it/],
    [taskWith(gone, stored, {}, ["sha256:1"]), "image_missing", /berth deploy --commit [0-9a-f]{40}/],
  ] as const) {
    const id = await deployment({ trigger: "redeploy" });
    await task.run(never);
    await task.settle?.();
    assert.deepEqual(await outcomeOf(id), ["failed", code]);
    assert.match((await rowOf(id)).failure?.hint ?? "", hint);
  }
});

test("what is under way here is not taken a second time when its lease has run out by the database's clock", async () => {
  await deployment({ trigger: "redeploy" });
  const end = Promise.withResolvers<OneOffResult>();
  const begun = Promise.withResolvers<void>();
  let runs = 0;
  const task = taskWith(() => {
    runs += 1;
    begun.resolve();
    return end.promise;
  });
  await task.run(never);
  await begun.promise;
  await letLeasesRunOut();
  const report = await task.run(never);
  end.resolve(refused);
  await task.settle?.();
  assert.deepEqual([report.detail, runs], ["1 under way", 1]);
});

test("whoever lost a deployment neither closes it nor says anything in its log", async () => {
  const id = await deployment({ trigger: "redeploy" });
  const lines: string[] = [];
  const task = taskWith(
    async () => {
      lines.length = 0;
      await api.database.db
        .updateTable("deployment")
        .set((set) => ({ lease_owner: "there", fence: set("fence", "+", 1) }))
        .execute();
      throw new Error("too late");
    },
    async (_id, more) => void lines.push(...more),
  );
  await task.run(never);
  await task.settle?.();
  assert.deepEqual([(await rowOf(id)).status, (await rowOf(id)).lease_owner, lines], ["starting", "there", []]);
});

const cases = [
  { trigger: "push", fence: 1, lease_owner: "dead", expected: ["failed", "interrupted", 0] },
  { trigger: "push", fence: 1, lease_owner: "here", expected: ["failed", "interrupted", 0] },
  { trigger: "redeploy", fence: 1, lease_owner: "dead", expected: ["failed", "release_failed", 1] },
  { trigger: "redeploy", fence: 2, lease_owner: "dead", expected: ["failed", "interrupted", 0] },
] as const;
for (const { expected, ...row } of cases) {
  test(`a ${row.trigger} that was begun ${row.fence} times and left by ${row.lease_owner} ends ${expected[1]}`, async () => {
    const id = await deployment({ ...row, status: "starting" });
    let runs = 0;
    const task = taskWith(async () => ((runs += 1), refused));
    await task.run(never);
    await task.settle?.();
    assert.deepEqual([...(await outcomeOf(id)), runs], expected);
  });
}

test("before a release command the files are backed up; an agent's command does not run without", async () => {
  const { db } = api.database;
  const events: string[] = [];
  const runtime = runtimeDouble({
    storageBytes: async () => 8192,
    runOnce: async () => {
      events.push("release");
      return refused;
    },
  });
  const deployBy = async (copies_data: boolean, status: "completed" | "failed") => {
    events.length = 0;
    const id = await deployment({ trigger: "push" });
    const { build_id, project_id } = await db
      .selectFrom("deployment")
      .select(["build_id", "project_id"])
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    await db.updateTable("build").set({ copies_data }).where("id", "=", build_id).execute();
    const ports = { runtime, logStore: logStoreDouble({ appendBuild: stored }) };
    const task = releasesTask(platformBeside(api, { owner: "here", ports }), () => {});
    await task.run(never);
    const ended = async () => {
      const query = db
        .updateTable("backup")
        .set({ status, finished_at: new Date() })
        .where("project_id", "=", project_id);
      const [row] = await query.returning(["content", "origin"]).execute();
      return row;
    };
    const backup = await eventually(ended, "the backup is requested");
    events.unshift(`${backup.origin} ${backup.content}`);
    await task.settle?.();
    return (await rowOf(id)).failure as { code: string } | null;
  };
  await deployBy(true, "completed");
  assert.deepEqual(events, ["release files", "release"]);
  const failure = await deployBy(true, "failed");
  assert.deepEqual([events, failure?.code], [["release files"], "copy_failed"]);
  await deployBy(false, "failed");
  assert.deepEqual(events, ["release files", "release"]);
});
