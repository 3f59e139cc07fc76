// Drawn with other operation files: it installs packages of the whole machine.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { run } from "../../src/kit/exec.ts";
import { provideImage } from "../../tools/images/provide-image.ts";
import { startTestEngine, withoutDocker } from "../support/docker-engine.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { notesApp } from "./apps.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { processesNaming } from "./processes.ts";
import { ask, startAsking, startTraffic, summary } from "./traffic.ts";

const skip =
  (process.getuid?.() !== 0 && "only root installs packages") ||
  (!runsAll && "SKIPPED: it installs packages of this machine; npm test -- --all runs it");
const perSecond = 100;

const shopApp = {
  "package.json": JSON.stringify({ name: "shop", private: true, scripts: { start: "node server.js" } }),
  "server.js": `let asked = 0;
require("node:http").createServer((request, response) => {
  asked += 1;
  if (request.url === "/asked") console.log("asked " + asked);
  response.end(String(process.pid) + " " + process.hrtime.bigint());
}).listen(process.env.PORT, process.env.HOST);
`,
};

test(
  "Debian's HAProxy and PostgreSQL are installed again under load: no request and no row is lost",
  { skip },
  async (t) => {
    const platform = await startPlatform();
    t.after(() => platform.destroy());
    await pushApps(platform);
    const servers = () =>
      processesNaming(platform.dataDir)
        .filter(({ commandLine }) => /bin\/postgres /.test(commandLine))
        .map(({ pid }) => pid);
    const before = servers();
    assert.ok(before.length > 0);
    const packages = ["haproxy", "postgresql", "postgresql-15", "postgresql-common", "git"];
    await losesNothing(t, platform, () => reinstall(packages));
    assert.deepEqual(servers(), before, "no database server was restarted");
  },
);

test(
  "Debian's Docker is installed again under load, and its engine restarted: no request and no row is lost, and every container stays",
  { skip: skip || withoutDocker },
  async (t) => {
    const engine = await startTestEngine();
    const image = await provideImage(engine.socket, "node");
    const platform = await startPlatform({
      ...{ BERTH_RUNTIME: "docker", BERTH_DOCKER_SOCKET: engine.socket },
      ...{ BERTH_BASE_IMAGE: `node=${image}`, BERTH_SHARED_IMAGES: image },
    });
    t.after(async () => {
      await platform.destroy();
      await engine.close();
    });
    const { shop } = await pushApps(platform);
    const containers = async () =>
      (await engine.api.call<{ Id: string }[]>({ path: "/containers/json" })).map(({ Id }) => Id).toSorted();
    const before = await containers();
    assert.ok(before.length > 0);
    await losesNothing(t, platform, async () => {
      await reinstall(["docker.io", "containerd", "runc"]);
      // As the packages' scripts do where systemd runs the engine.
      await engine.restart();
      await eventually(async () => (await missing(platform)).length === 0, "Berth sees the engine again");
    });
    assert.deepEqual(await containers(), before);
    const asked = (await ask(platform.edgePort, "shop", "/asked")).body;
    assert.notEqual(asked, "");
    await eventually(async () => {
      const { body } = await platform.call<{ lines: unknown[] }>("GET", "/v1/projects/shop/logs?grep=asked");
      return body.lines.length > 0;
    }, "what an application writes now is in its log");
    await shop.commit({ "version.txt": "2" });
    const pushed = await shop.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  },
);

const missing = async (platform: TestPlatform) =>
  (await platform.call<{ platform: { missing: unknown[] } }>("GET", "/v1/me")).body.platform.missing;

async function pushApps(platform: TestPlatform): Promise<Readonly<Record<"notes" | "shop", TestApp>>> {
  const apps = {
    notes: await createApp(platform, "notes", notesApp),
    shop: await createApp(platform, "shop", shopApp),
  };
  assert.equal((await platform.call("POST", "/v1/projects/notes/database")).status, 201);
  for (const app of Object.values(apps)) {
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  }
  return apps;
}

async function reinstall(packages: readonly string[]): Promise<void> {
  const args = ["install", "--reinstall", "-y", "--no-install-recommends", ...packages];
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const installed = await run({ file: "apt-get", args }, { env, timeoutMs: 300_000 });
  assert.equal(installed.exitCode, 0, `${installed.stdout}${installed.stderr}`);
}

/** Does `what` under requests to `shop` and rows that are added to `notes`. */
async function losesNothing(t: TestContext, platform: TestPlatform, what: () => Promise<void>): Promise<void> {
  const requests = startTraffic(platform.edgePort, ["shop"], perSecond);
  const rows = startAsking(() => ask(platform.edgePort, "notes", "/add"), 5);
  const [done] = await Promise.allSettled([what()]);
  const answers = [await requests.stop(), await rows.stop()];
  if (done.status === "rejected") throw done.reason;
  const failed = answers.flat().filter(({ status }) => status !== 200);
  assert.deepEqual(failed.slice(0, 5), []);
  const { body } = await ask(platform.edgePort, "notes", "/");
  assert.equal(body, `rows ${answers[1]?.length} file kept`);
  t.diagnostic(`${summary(answers.flat())}; ${answers[1]?.length} rows`);
}
