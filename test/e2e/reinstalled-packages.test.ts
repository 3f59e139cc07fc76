// Drawn with other operation files: it installs packages of the whole machine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "../../src/kit/exec.ts";
import { runsAll } from "../support/draw-cases.ts";
import { liveApp, notesApp } from "./apps.ts";
import { createApp, startPlatform } from "./platform.ts";
import { processesNaming } from "./processes.ts";
import { ask, startAsking, startTraffic } from "./traffic.ts";

const skip =
  (process.getuid?.() !== 0 && "only root installs packages") ||
  (!runsAll && "SKIPPED: it installs packages of this machine; npm test -- --all runs it");
const perSecond = 100;

test("Debian's packages are installed again under load: no request and no row is lost", { skip }, async (t) => {
  const platform = await startPlatform();
  t.after(() => platform.destroy());
  const notes = await createApp(platform, "notes", notesApp);
  assert.equal((await platform.call("POST", "/v1/projects/notes/database")).status, 201);
  for (const app of [notes, await createApp(platform, "shop", liveApp({ version: "shop" }))]) {
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  }
  const servers = () =>
    processesNaming(platform.dataDir)
      .filter(({ commandLine }) => /bin\/postgres /.test(commandLine))
      .map(({ pid }) => pid);
  const before = servers();
  assert.ok(before.length > 0);

  const requests = startTraffic(platform.edgePort, ["shop"], perSecond);
  const rows = startAsking(() => ask(platform.edgePort, "notes", "/add"), 5);
  const names = ["haproxy", "postgresql", "postgresql-15", "postgresql-common", "git"];
  const args = ["install", "--reinstall", "-y", "--no-install-recommends", ...names];
  const installed = await run(
    { file: "apt-get", args },
    { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, timeoutMs: 300_000 },
  );
  const answers = [await requests.stop(), await rows.stop()];
  assert.equal(installed.exitCode, 0, `${installed.stdout}${installed.stderr}`);
  const failed = answers.flat().filter(({ status }) => status !== 200);
  assert.deepEqual(failed.slice(0, 5), []);
  const { body } = await ask(platform.edgePort, "notes", "/");
  assert.equal(body, `rows ${answers[1]?.length} file kept`);
  assert.deepEqual(servers(), before, "no database server was restarted");
  t.diagnostic(`${answers.flat().length} requests, ${answers[1]?.length} rows`);
});
