import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { until } from "../src/kit/until.ts";
import { startReleasePlatform, type ReleasePlatform, type ReleaseProject } from "./support/releases.ts";
import { guardMs } from "./support/eventually.ts";

let running: ReleasePlatform;

before(async () => void (running = await startReleasePlatform()));
after(() => running.close());

const call = (project: ReleaseProject, method: string, path: string, body?: unknown) =>
  running.api.call(method, `${project.path}${path}`, { token: project.org.owner, body });

interface Run {
  readonly number: number;
  readonly status: string;
  readonly exit_code: number | null;
}

const runOf = async (project: ReleaseProject, number: number) =>
  (await call(project, "GET", `/runs/${number}`)).body["run"] as Run;

async function ends(project: ReleaseProject, number: number): Promise<string> {
  const status = async () => {
    const { status } = await runOf(project, number);
    return ["queued", "running"].includes(status) ? undefined : status;
  };
  return (await until(status, { timeoutMs: guardMs })) ?? "not ended";
}

/** From now on commands run until they are ended; resolves when the next one has begun. */
function endless(): Promise<void> {
  return new Promise((resolve) => {
    running.apps.runOnce = async (_, { signal }) => {
      resolve();
      if (!signal.aborted) await once(signal, "abort");
      return { outcome: "cancelled" };
    };
  });
}

test("a command runs in the active image with its variables, and its output and exit code come back without secrets", async () => {
  const project = await running.servingProject();
  await call(project, "PUT", "/env/SECRET_WORD", { value: "correct-horse" });
  await project.reaches(2, "active");
  const seen: string[] = [];
  running.apps.runOnce = async ({ env }, { command, onOutput }) => {
    seen.push(command, env["SECRET_WORD"] ?? "");
    onOutput(Buffer.from("one\nthe word is correct-horse\nlast"));
    return { outcome: "exited", code: 7, out_of_memory: false };
  };
  const { status, body } = await call(project, "POST", "/runs", { command: "npm run seed" });
  assert.deepEqual(seen, ["npm run seed", "correct-horse"]);
  const { run, output, complete } = body as { run: Run; output: string; complete: boolean };
  assert.deepEqual([status, run.status, run.exit_code, complete], [201, "failed", 7, true]);
  assert.match(output, /^one\nthe word is [^c].*\nlast\n$/);
  assert.ok(!JSON.stringify(body).includes("correct-horse"));
});

test("a cancelled command ends, and its slot is free", async () => {
  const project = await running.servingProject();
  const begun = endless();
  const { body } = await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
  await begun;
  const { number } = body["run"] as Run;
  assert.equal((await call(project, "POST", `/runs/${number}/cancel`)).status, 200);
  assert.equal(await ends(project, number), "cancelled");
  assert.equal((await call(project, "POST", `/runs/${number}/cancel`)).status, 200);
});

test("a command whose control plane stopped is interrupted, and never begun again", async () => {
  const project = await running.servingProject();
  const begun = endless();
  const { body } = await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
  await begun;
  await running.pause();
  running.apps.runOnce = async () => assert.fail("it was begun again");
  // As a kill leaves it: begun, with a lease that has run out.
  const { number } = body["run"] as Run;
  await running.platform.db
    .updateTable("run")
    .set({ status: "running", finished_at: null, lease_until: new Date(0) })
    .where("project_id", "=", project.owner.project_id)
    .execute();
  await running.resume();
  assert.equal(await ends(project, number), "interrupted");
});

test("what a deleted project runs ends", async () => {
  const project = await running.servingProject();
  const begun = endless();
  await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 });
  await begun;
  await call(project, "DELETE", "");
  const ended = async () => {
    const row = await running.platform.db
      .selectFrom("run")
      .select("status")
      .where("project_id", "=", project.owner.project_id)
      .executeTakeFirstOrThrow();
    return row.status === "cancelled" || undefined;
  };
  assert.equal(await until(ended, { timeoutMs: guardMs }), true);
});

test("a project has few commands open at once, and one without a deployment has none", async () => {
  const project = await running.servingProject();
  void endless();
  for (let count = 0; count < 5; count += 1)
    assert.equal((await call(project, "POST", "/runs", { command: "sleep 1000", wait_seconds: 0 })).status, 201);
  assert.equal((await call(project, "POST", "/runs", { command: "true", wait_seconds: 0 })).status, 409);
  const empty = await call(await running.newProject(), "POST", "/runs", { command: "true" });
  assert.deepEqual([empty.status, empty.body["code"]], [409, "nothing_to_deploy"]);
});
