import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { until } from "../src/kit/until.ts";
import { startReleasePlatform, type ReleasePlatform, type ReleaseProject } from "./support/releases.ts";
import { eventually, guardMs } from "./support/eventually.ts";

let running: ReleasePlatform;

before(async () => void (running = await startReleasePlatform()));
beforeEach(() => {
  running.apps.start = "healthy";
  running.apps.processes = { worker: "node worker.js" };
  running.apps.crashing = undefined;
});
after(() => running.close());

const call = (project: ReleaseProject, method: string, path: string, body?: unknown) =>
  running.api.call(method, `${project.path}${path}`, { token: project.org.operator, body });

interface Listed {
  readonly type: string;
  readonly replicas: number;
  readonly running: readonly { readonly deployment: number; readonly state: string; readonly since: string }[];
}

const processesOf = async (project: ReleaseProject) =>
  (await call(project, "GET", "/processes")).body["processes"] as readonly Listed[];

/** Waits until the process type runs as expected. */
async function reaches(project: ReleaseProject, type: string, expected: readonly string[]): Promise<Listed> {
  let last: readonly Listed[] = [];
  const look = async () => {
    last = await processesOf(project);
    const found = last.find((each) => each.type === type);
    const states = found?.running.map(({ deployment, state }) => `${deployment} ${state}`);
    return JSON.stringify(states) === JSON.stringify(expected) ? found : undefined;
  };
  const found = await until(look, { timeoutMs: guardMs });
  assert.ok(found, JSON.stringify(last));
  return found;
}

/** A project whose deployment 1 has a worker beside web. */
async function projectWithWorker() {
  const project = await running.newProject();
  assert.equal((await project.push()).accepted, true);
  await reaches(project, "worker", ["1 up"]);
  return project;
}

const idOf = async (project: ReleaseProject, number: number) =>
  (await project.deployments()).find((each) => each.number === number)?.id as string;

test("every line of the Procfile runs, and only web has a port", async () => {
  const project = await projectWithWorker();
  const id = await idOf(project, 1);
  assert.deepEqual(
    (await processesOf(project)).map(({ type, replicas }) => [type, replicas]),
    [
      ["web", 1],
      ["worker", 1],
    ],
  );
  assert.equal(running.apps.started.get(`${id}.worker`)?.port, null);
  assert.equal(running.route(project.owner.project_id)?.targets, 1);
});

test("a deploy stops the old worker before it starts the new one, and web keeps running", async () => {
  const project = await projectWithWorker();
  assert.equal((await project.push()).accepted, true);
  await reaches(project, "worker", ["2 up"]);
  const [old, next] = [await idOf(project, 1), await idOf(project, 2)];
  const { events } = running.apps;
  assert.ok(events.indexOf(`-${old}.worker`) < events.indexOf(`+${next}.worker`), events.join());
  assert.ok(events.indexOf(`+${next}`) < events.indexOf(`-${old}.worker`), "web is healthy first");
  const ended = await until(() => (events.includes(`-${old}`) ? events.indexOf(`-${old}`) : undefined), {
    timeoutMs: guardMs,
  });
  assert.ok((ended ?? 0) > events.indexOf(`+${next}.worker`));
});

test("a worker that crashes at its start fails the push, and the old worker starts again once the new one has stopped", async () => {
  const project = await projectWithWorker();
  running.apps.crashing = "worker";
  const { accepted, lines } = await project.push();
  assert.equal(accepted, false);
  assert.ok(
    lines.some((line) => line.includes("The process worker crashed")),
    lines.join("\n"),
  );
  running.apps.crashing = undefined;
  await reaches(project, "worker", ["1 up"]);
  const [old, failed] = [await idOf(project, 1), await idOf(project, 2)];
  const { events } = running.apps;
  assert.ok(events.lastIndexOf(`+${old}.worker`) > events.lastIndexOf(`-${failed}.worker`), events.join());
});

test("the new worker of a type with overlap starts while the old one still runs", async () => {
  const project = await projectWithWorker();
  assert.equal((await call(project, "PUT", "/processes/worker", { overlap: true })).status, 200);
  assert.equal((await project.push()).accepted, true);
  await reaches(project, "worker", ["2 up"]);
  const [old, next] = [await idOf(project, 1), await idOf(project, 2)];
  const { events } = running.apps;
  assert.ok(events.indexOf(`+${next}.worker`) < events.indexOf(`-${old}.worker`), events.join());
});

test("a type scales to zero and back, web keeps at least one replica, and an unknown type gets a list of the known ones", async () => {
  const project = await projectWithWorker();
  assert.deepEqual((await call(project, "PUT", "/processes/worker", { replicas: 0 })).body, {
    ...{ type: "worker", replicas: 0, overlap: false },
  });
  await reaches(project, "worker", []);
  await call(project, "PUT", "/processes/worker", { replicas: 1 });
  await reaches(project, "worker", ["1 up"]);
  assert.equal((await call(project, "PUT", "/processes/web", { replicas: 0 })).status, 400);
  const unknown = await call(project, "PUT", "/processes/wroker", { replicas: 1 });
  assert.deepEqual([unknown.status, String(unknown.body["error"]).includes("web, worker")], [404, true]);
});

test("an application without web but with a worker deploys", async () => {
  const project = await running.newProject();
  running.apps.web = null;
  try {
    const { accepted, lines } = await project.push();
    assert.equal(accepted, true);
    assert.ok(lines.includes("-----> Live (deployment 1)"), lines.join("\n"));
  } finally {
    running.apps.web = "";
  }
  await reaches(project, "worker", ["1 up"]);
  assert.deepEqual(
    (await processesOf(project)).map(({ type }) => type),
    ["worker"],
  );
  assert.equal(running.route(project.owner.project_id)?.targets, 0);
});

test("a crashed worker is restarted and named in the timeline", async () => {
  const project = await projectWithWorker();
  running.apps.crash(`${await idOf(project, 1)}.worker`);
  await running.platform.wakeups.send(running.platform.db, "apps");
  // The worker may run again before the test observes it, but the timeline keeps the crash.
  const isNamed = async () => {
    const { body } = await call(project, "GET", "/timeline");
    return (body["timeline"] as { summary: string }[]).some(({ summary }) =>
      summary.includes("deployment 1, worker 0"),
    );
  };
  await eventually(isNamed, "the timeline names the crashed worker");
  await reaches(project, "worker", ["1 up"]);
});

test("a restart creates a new deployment of the same image, which a rollback skips", async () => {
  const project = await projectWithWorker();
  await project.push();
  const { status, body } = await call(project, "POST", "/restart", {});
  assert.deepEqual([status, body["status"], (body["deployment"] as { number: number }).number], [200, "restarted", 3]);
  await reaches(project, "worker", ["3 up"]);
  assert.equal((await project.deployments())[0]?.trigger, "restart");
  const rolled = await call(project, "POST", "/rollback", {});
  const commits = await running.platform.db
    .selectFrom("deployment")
    .select(["number", "commit"])
    .where("project_id", "=", project.owner.project_id)
    .execute();
  const commitOf = (number: number) => commits.find((row) => row.number === number)?.commit;
  assert.equal(rolled.status, 200);
  assert.equal(commitOf(4), commitOf(1));
});

test("a restart of one type restarts its processes within the deployment", async () => {
  const project = await projectWithWorker();
  const before = (await reaches(project, "worker", ["1 up"])).running[0]?.since as string;
  const { status, body } = await call(project, "POST", "/restart", { type: "worker" });
  assert.deepEqual([status, body["deployment"]], [200, null]);
  const after = (await reaches(project, "worker", ["1 up"])).running[0]?.since as string;
  assert.ok(Date.parse(after) > Date.parse(before));
  assert.equal((await project.deployments()).length, 1);
  assert.equal((await call(project, "POST", "/restart", { type: "nothing" })).status, 404);
});

test("a restart whose processes crash fails, and the previous processes keep running", async () => {
  const project = await projectWithWorker();
  running.apps.start = "crash";
  const { status, body } = await call(project, "POST", "/restart", {});
  assert.deepEqual([status, body["code"]], [502, "restart_failed"]);
  const one = await call(project, "POST", "/restart", { type: "worker" });
  assert.deepEqual([one.status, one.body["code"]], [502, "restart_failed"]);
  running.apps.start = "healthy";
  await reaches(project, "web", ["1 up"]);
  await reaches(project, "worker", ["1 up"]);
});
