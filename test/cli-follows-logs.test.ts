import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createDiskLogStore } from "../src/adapters/log-store-disk/disk-log-store.ts";
import { cliUser } from "./support/cli.ts";
import { eventually } from "./support/eventually.ts";
import { testBuild, testProject } from "./support/fixtures.ts";
import { testApi, testOrganization, testToken } from "./support/test-platform.ts";

test("berth logs -f prints each line once, and ends with the platform's error message when its token is revoked", async () => {
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
    child.stdout.on("data", (chunk: Buffer) => (seen += String(chunk)));
    const sees = (text: string) => eventually(() => seen.includes(text), `${text} is printed`);
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
    child.stdout.on("data", (chunk: Buffer) => (seen += String(chunk)));
    const sees = (text: string) => eventually(() => seen.includes(text), `${text} is printed`);
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

test("berth logs --since prints every line of the range, page after page; --grep and -n filter them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-range-"));
  const logStore = createDiskLogStore({ dir: folder });
  const api = await testApi({ ports: { logStore } });
  try {
    const org = await testOrganization(api.database.db, "home");
    const { id, slug } = await testProject(api.platform, org);
    const line = (hoursAgo: number, process: string, text: string) => {
      const at = new Date(Date.now() - hoursAgo * 3_600_000).toISOString();
      return { at, deployment: 1, process, replica: 0, text };
    };
    const numbered = Array.from({ length: 6000 }, (_, index) => line(2, "web", `line ${index}`));
    const others = [line(1, "worker", "Failed job"), line(1, "worker", "done"), line(1, "web", "failed page")];
    await logStore.appendRuntime(id, [
      line(50, "web", "old"),
      line(49, "worker", "failed job, old"),
      ...numbered,
      ...others,
    ]);
    await using user = await cliUser({ url: api.baseUrl, token: org.member });
    const texts = async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await user.berth(["logs", "-p", slug, "--json", ...args]);
      assert.equal(exitCode, 0, stderr);
      return (JSON.parse(stdout) as { lines: { text: string }[] }).lines.map(({ text }) => text);
    };
    const all = numbered.map(({ text }) => text);
    assert.deepEqual(await texts("--since", "1d"), [...all, ...others.map(({ text }) => text)]);
    assert.deepEqual(await texts("--since", "1d", "--until", "90m", "-n", "3"), all.slice(-3));
    const failed = ["--grep", "failed", "--process", "worker"];
    assert.deepEqual(await texts("--since", "1d", ...failed), ["Failed job"]);
    assert.deepEqual(await texts(...failed), ["failed job, old", "Failed job"]);
    assert.deepEqual(await texts("--until", new Date(Date.now() - 49.5 * 3_600_000).toISOString()), ["old"]);
    const plain = await user.berth(["logs", "-p", slug, "--since", "1d"]);
    assert.equal(plain.stdout.split("\n").length, 6004);
    const noteOf = async (...args: string[]) => (await user.berth(["logs", "-p", slug, ...args])).stderr;
    assert.match(await noteOf("--process", "wroker"), /has no process type wroker; it has none yet/);
    assert.match(await noteOf("--grep", "nowhere"), /No stored line matches/);
    assert.match(await noteOf("--since", "1s", "--grep", "nowhere"), /No stored line matches/);
    for (const wrong of [
      ["--since", "soon"],
      ["-f", "--until", "1h"],
      ["--source", "build", "--since", "1h"],
    ])
      assert.equal((await user.berth(["logs", "-p", slug, ...wrong])).exitCode, 2, wrong.join(" "));
  } finally {
    await api.close();
    await rm(folder, { recursive: true, force: true });
  }
});
