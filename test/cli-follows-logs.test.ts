import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createDiskLogStore } from "../src/adapters/log-store-disk/disk-log-store.ts";
import { cliUser } from "./support/cli.ts";
import { testBuild, testProject } from "./support/fixtures.ts";
import { testApi, testOrganization, testToken } from "./support/test-platform.ts";

test("berth logs -f prints each line once, and ends with the platform's words when its token is revoked", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-follow-"));
  const logStore = createDiskLogStore({ dir: folder });
  const api = await testApi({ ports: { logStore } });
  try {
    const org = await testOrganization(api.database.db, "home");
    const { id, slug } = await testProject(api.platform, org);
    const token = await testToken(api.database.db, org.id, {});
    const write = (text: string) =>
      logStore.appendRuntime(id, [{ at: new Date().toISOString(), deployment: 1, process: "web", replica: 0, text }]);
    await write("one");
    await using user = await cliUser({ url: api.baseUrl, token: token.text });
    const { child, ended } = user.start(["logs", "-f", "-p", slug, "--json"]);
    let seen = "";
    const sees = (text: string) =>
      new Promise<void>((resolve) => {
        const look = () => (seen.includes(text) ? resolve() : undefined);
        child.stdout.on("data", (chunk: Buffer) => {
          seen += String(chunk);
          look();
        });
      });
    await sees("one");
    await write("two");
    await sees("two");
    await api.call("DELETE", `/v1/api-tokens/${token.id}`, { token: org.owner });
    const { exitCode, stdout, stderr } = await ended;
    assert.equal(exitCode, 3, stderr);
    const lines = stdout.trim().split("\n");
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { text: string }).text),
      ["one", "two"],
    );
    assert.match(stderr, /unauthorized/);
  } finally {
    await api.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test("berth logs -f --source build prints each of a thousand lines that come at once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-follow-"));
  const logStore = createDiskLogStore({ dir: folder });
  const api = await testApi({ ports: { logStore } });
  try {
    const org = await testOrganization(api.database.db, "home");
    const { id, slug } = await testProject(api.platform, org);
    const token = await testToken(api.database.db, org.id, {});
    const build = await testBuild(api.platform, { org_id: org.id, project_id: id }, { status: "running" });
    await logStore.appendBuild(build, ["begin"]);
    await using user = await cliUser({ url: api.baseUrl, token: token.text });
    const { child, ended } = user.start(["logs", "-f", "-p", slug, "--source", "build"]);
    let seen = "";
    const sees = (text: string) =>
      new Promise<void>((resolve) =>
        child.stdout.on("data", (chunk: Buffer) => {
          seen += String(chunk);
          if (seen.includes(text)) resolve();
        }),
      );
    await sees("begin\n");
    const lines = Array.from({ length: 1000 }, (_, index) => `line ${index}`);
    await logStore.appendBuild(build, [...lines, "end"]);
    await sees("end\n");
    child.kill("SIGINT");
    const { stdout } = await ended;
    assert.deepEqual(stdout.trim().split("\n"), ["begin", ...lines, "end"]);
  } finally {
    await api.close();
    await rm(folder, { recursive: true, force: true });
  }
});
