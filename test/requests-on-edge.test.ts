import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createDiskLogStore } from "../src/adapters/log-store-disk/disk-log-store.ts";
import type { Result } from "../src/contract/routes.ts";
import { edgeTask } from "../src/reconcile/edge/edge-task.ts";
import { createTestEdge } from "./support/edges.ts";
import { eventually } from "./support/eventually.ts";
import { readyReplica, testBuild, testDeployment, testProject } from "./support/fixtures.ts";
import { platformBeside } from "./support/platform-double.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "./support/test-platform.ts";

type Requests = Result<"requests.list">["requests"];
type Paths = Result<"requests.paths">;

const folder = await mkdtemp(join(tmpdir(), "berth-requests-"));
const logs = join(folder, "logs");
const logStore = createDiskLogStore({ dir: logs });
const edge = createTestEdge({ stateDir: join(folder, "edge") });
const app = createServer((asked, response) => {
  response.writeHead(asked.url?.startsWith("/broken") === true ? 500 : 200).end("hello");
});
let api: TestApi;
let org: TestOrganization;
let slug: string;
let hostname: string;

before(async () => {
  api = await testApi({ ports: { logStore } });
  org = await testOrganization(api.database.db, "home");
  await new Promise<void>((done) => app.listen(0, "127.0.0.1", done));
  const project = await testProject(api.platform, org);
  slug = project.slug;
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const id = await testDeployment(api.platform, owner, { build_id, number: 3, status: "active" });
  const address = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
  await readyReplica(api.platform.db, { org_id: org.id, deployment_id: id, address });
  hostname = new URL((await read<{ url: string }>("")).url).hostname;
  await edgeTask(platformBeside(api, { ports: { edge, logStore } })).run(new AbortController().signal);
});
after(async () => {
  await edge.stop(0);
  await api.close();
  app.close();
  await rm(folder, { recursive: true, force: true });
});

async function read<T>(path: string, token = org.owner): Promise<T> {
  const called = await api.call("GET", `/v1/projects/${slug}${path}`, { token });
  assert.equal(called.status, 200, called.text);
  return called.body as T;
}

async function visit(path: string): Promise<void> {
  const { listen } = await edge.observe();
  const port = Number(listen?.split(":").at(-1));
  await new Promise<void>((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path, headers: { host: hostname }, agent: false }, (response) =>
      response.resume().on("end", resolve),
    );
    asked.on("error", reject).end();
  });
}

test("a visitor's request is listed with its deployment and replica, newest first, and no query string is stored", async () => {
  for (const path of ["/items/1?token=secret", "/items/2", "/broken"]) await visit(path);
  const listed = await eventually(async () => {
    const { requests } = await read<{ requests: Requests }>("/requests");
    return requests.length === 3 ? requests : undefined;
  }, "the requests are listed");
  assert.deepEqual(
    listed.map(({ path, status, deployment, replica }) => [path, status, deployment, replica]),
    [
      ["/broken", 500, 3, 0],
      ["/items/2", 200, 3, 0],
      ["/items/1", 200, 3, 0],
    ],
  );
  assert.ok(listed.every(({ request_id, ms, weight }) => request_id !== null && ms >= 0 && weight === 1));
  const texts = await Promise.all(
    (await readdir(logs, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => readFile(join(entry.parentPath, entry.name), "utf8")),
  );
  assert.ok(texts.length > 0 && !texts.join("").includes("secret"));
});

test("filters choose requests, and paths are counted together with their errors", async () => {
  const { requests } = await read<{ requests: Requests }>("/requests?status=5xx&since=1h");
  assert.deepEqual(
    requests.map(({ path }) => path),
    ["/broken"],
  );
  assert.deepEqual((await read<{ requests: Requests }>("/requests?slow_ms=3600000")).requests, []);
  assert.deepEqual((await read<{ requests: Requests }>("/requests?until=1h")).requests, []);
  const { paths, requests: counted, sampled } = await read<Paths>("/requests/paths?sort=errors");
  assert.deepEqual([counted, sampled], [3, false]);
  assert.deepEqual(
    paths.map(({ method, path, count, errors }) => [method, path, count, errors]),
    [
      ["GET", "/broken", 1, 1],
      ["GET", "/items/:id", 2, 0],
    ],
  );
});

test("diagnose names a path that fails", async () => {
  for (let i = 0; i < 12; i += 1) await visit("/broken");
  const found = await eventually(async () => {
    const { findings } = await read<Result<"diagnosis.get">>("/diagnosis");
    return findings.find(({ code }) => code === "path_failing");
  }, "the finding appears");
  assert.match(found.sentence, /^GET \/broken failed 13 of 13 times/);
});

test("another organization's project is as missing as one that never was", async () => {
  const other = await testOrganization(api.database.db, "abroad");
  for (const path of ["/requests", "/requests/paths"]) {
    const called = await api.call("GET", `/v1/projects/${slug}${path}`, { token: other.owner });
    assert.equal(called.status, 404);
  }
});
