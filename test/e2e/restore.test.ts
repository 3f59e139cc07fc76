// Drawn with other operation files: it starts whole platforms and loses one.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { readConfig } from "../../src/daemon/config.ts";
import { follow } from "../../src/daemon/recovery/restore-command.ts";
import type { ListedBackup } from "../../src/features/platform/platform.ts";
import { run, runOk, start, type ExecResult } from "../../src/kit/exec.ts";
import { eventually } from "../support/eventually.ts";
import { readTextOrEmpty } from "../../src/kit/whole-file.ts";
import { notesApp } from "./apps.ts";
import {
  berthd,
  createApp,
  inherited,
  layGround,
  nodeApp,
  restore,
  startPlatform,
  type TestPlatform,
} from "./platform.ts";
import { killProcesses, processesNaming } from "./processes.ts";
import { ask } from "./traffic.ts";

describe("a platform whose machine is lost", () => {
  const safe = mkdtempSync(join(tmpdir(), "berth-safe-"));
  const [backups, key] = [join(safe, "backups"), join(safe, "recovery.key")];
  let commit = "";
  let hostKey = "";
  let restored: TestPlatform | undefined;
  const children: ReturnType<typeof start>[] = [];

  before(async () => {
    const lost = await startPlatform();
    try {
      const app = await createApp(lost, "notes", notesApp);
      assert.equal((await lost.call("POST", "/v1/projects/notes/database")).status, 201);
      const pushed = await app.push();
      assert.equal(pushed.exitCode, 0, pushed.stderr);
      commit = await app.head();
      assert.equal((await lost.visit("notes", "/add")).body, "rows 1 file kept");
      const plain = await createApp(lost, "plain", {
        ...nodeApp(""),
        "server.js": `require("node:http").createServer((_, response) => response.end(process.env.GREETING)).listen(process.env.PORT, process.env.HOST);\n`,
      });
      const secret = await lost.call("PATCH", "/v1/projects/plain/env", { variables: { GREETING: "sealed" } });
      assert.equal(secret.status, 200, JSON.stringify(secret.body));
      assert.equal((await plain.push()).exitCode, 0);
      assert.equal((await lost.call("POST", "/v1/projects", { slug: "young", name: "young" })).status, 201);
      assert.equal((await lost.call("POST", "/v1/projects/young/database")).status, 201);
      assert.equal(
        (await lost.call("POST", "/v1/projects/notes/domains", { hostname: "notes.example.org" })).status,
        201,
      );
      for (const content of ["database", "files"]) {
        assert.equal((await lost.call("POST", "/v1/projects/notes/backups", { content })).status, 201);
        const list = async () =>
          (await lost.call<{ backups: { status: string }[] }>("GET", "/v1/projects/notes/backups")).body.backups;
        await eventually(
          async () => (await list())[0]?.status === "completed",
          `the backup of the ${content} is complete`,
        );
      }
      await backUp(lost);
      // What was written since all backups is in the archive alone.
      assert.equal((await lost.visit("notes", "/add")).body, "rows 2 file kept");
      for (const slug of ["notes", "young"]) await archivedNow(lost, slug);
      hostKey = readFileSync(join(lost.dataDir, "ssh/host_ed25519"), "utf8");
      cpSync(join(lost.dataDir, "backups"), backups, { recursive: true });
      cpSync(join(lost.dataDir, "recovery.key"), key);
    } finally {
      await lost.destroy();
    }
  });
  after(async () => {
    for (const child of children) child.kill("SIGKILL");
    await restored?.destroy();
    rmSync(safe, { recursive: true, force: true });
  });

  it("is refused with another key, a damaged file or a folder that holds something", async () => {
    const other = join(safe, "other.key");
    writeFileSync(other, "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n");
    const { dataDir } = await layGround();
    assert.match((await restore({ BERTH_DATA: dataDir }, backups, other)).stderr, /cannot be opened with this key/);
    const [name = ""] = readdirSync(join(backups, "platform")).filter((each) => each.endsWith(".age"));
    const cut = join(safe, "cut.age");
    writeFileSync(cut, readFileSync(join(backups, "platform", name)).subarray(0, -100));
    assert.match((await restore({ BERTH_DATA: dataDir }, cut, key)).stderr, /cannot be opened/);
    assert.match(
      (await restore({ BERTH_DATA: dataDir }, backups, key, "--backup", "pbk_none")).stderr,
      /has no backup pbk_none\. It has pbk_/,
    );
    for (const [list, reason] of [
      ["[{", /cannot be read: /],
      ['[{"id":"pbk_one","storage_key":"platform/pbk_one"}]', /cannot be read: .* no file platform\/pbk_one/],
    ] as const) {
      const copy = mkdtempSync(join(safe, "copy-"));
      mkdirSync(join(copy, "platform"));
      writeFileSync(join(copy, "platform/backups.json"), list);
      assertRefused(await restore({ BERTH_DATA: dataDir }, copy, key), reason);
    }
    assertRefused(await restore({ BERTH_DATA: dataDir }, backups, cut), /holds no recovery key/);
    const keyFile = join(safe, "elsewhere.key");
    writeFileSync(keyFile, "those of another platform");
    assertRefused(await restore({ BERTH_DATA: dataDir, BERTH_KEY_FILE: keyFile }, backups, key), /has other keys/);
    assert.equal(readFileSync(keyFile, "utf8"), "those of another platform");
    assert.deepEqual(readdirSync(dataDir), [], "a platform can be started there");
    rmSync(dataDir, { recursive: true });
    const { dataDir: taken } = await layGround();
    writeFileSync(join(taken, "mine"), "kept");
    assert.match((await restore({ BERTH_DATA: taken }, backups, key)).stderr, /is not empty/);
    assert.equal(readFileSync(join(taken, "mine"), "utf8"), "kept");
    rmSync(taken, { recursive: true });
  });

  it("comes back on another one, also after an interruption: applications, rows, files, secrets, repositories", async () => {
    const { dataDir } = await layGround();
    const [origin] = JSON.parse(readFileSync(join(backups, "platform/backups.json"), "utf8")) as ListedBackup[];
    await interrupt(dataDir);
    // As on a medium that cannot be written.
    const copy = join(safe, "read-only");
    cpSync(backups, copy, { recursive: true });
    const setMode = (mode: string) => runOk({ file: "chmod", args: ["--recursive", mode, copy] });
    await setMode("a-w");
    const { stdout, stderr, exitCode } = await restore({ BERTH_DATA: dataDir }, copy, key);
    await setMode("u+w");
    assert.ok(statSync(join(dataDir, "backups/platform")).mode & 0o200, "later backups can be stored");
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /main\/notes: database, as of .*\n/);
    assert.match(stdout, /main\/young: database, as of .*\n/);
    assert.match(stdout, /notes\.example\.org/);
    assert.equal(existsSync(join(dataDir, "restoring")), false);
    assert.deepEqual(processesNaming(dataDir), [], "no server of the interrupted one is left");
    restored = await startPlatform({}, { dataDir, lacksParts: true });
    const platform = restored;
    const visit = async (slug: string) => (await platform.visit(slug).catch(() => undefined))?.body;
    await eventually(
      async () => (await visit("notes")) === "rows 2 file kept",
      "the application serves its rows and files",
    );
    await eventually(async () => (await visit("plain")) === "sealed", "the other application serves with its secret");
    assert.equal(readFileSync(join(dataDir, "ssh/host_ed25519"), "utf8"), hostKey);
    const header = `http.extraHeader=Authorization: Basic ${Buffer.from(`berth:${platform.token}`).toString("base64")}`;
    const args = ["-c", header, "ls-remote", `${platform.api}/git/main/notes.git`, "refs/heads/main"];
    assert.equal((await run({ file: "git", args })).stdout.split("\t")[0], commit);
    await backUp(platform);
    const kept = JSON.parse(readFileSync(join(dataDir, "backups/platform/backups.json"), "utf8")) as ListedBackup[];
    assert.deepEqual(kept[1], origin, "it keeps the backup that it came from");
    assert.ok(existsSync(join(dataDir, "backups", origin?.storage_key ?? "")));
  });

  it("stands by elsewhere, follows newer backups, and is the platform once it is promoted", async () => {
    const lost = restored as TestPlatform;
    const ground = await layGround();
    const env = { ...ground.env };
    const standby = () => readTextOrEmpty(join(ground.dataDir, "standby")).trim();
    const restoring = join(ground.dataDir, "restoring");
    const endAtReport = (line: string) => assert.doesNotMatch(line, /^(?:Restored|berthd:)/);
    await assert.rejects(follow(readConfig(env), [backups, "--key", key], endAtReport));
    assert.deepEqual([standby() !== "", existsSync(restoring)], [true, false], "it stands by, or is half restored");
    const copied = join(ground.dataDir, "backups");
    assertRefused(await restore(env, copied, key), /is in the data folder/);
    assert.ok(existsSync(copied));
    const follower = start(berthd("follow", backups, "--key", key), { env });
    children.push(follower);
    let said = "";
    for (const stream of [follower.stdout, follower.stderr])
      stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const refused = await run(berthd("start"), { env });
    assert.match(refused.stderr, /stands by .*berthd promote/);
    const first = standby();
    const changed = await lost.call("PATCH", "/v1/projects/plain/env", { variables: { GREETING: "newer" } });
    assert.equal(changed.status, 200, JSON.stringify(changed.body));
    await backUp(lost);
    cpSync(join(lost.dataDir, "backups"), backups, { recursive: true, force: true });
    await eventually(() => standby() !== first && !existsSync(restoring), "it has the newer one");
    const list = join(backups, "platform/backups.json");
    const known = JSON.parse(readFileSync(list, "utf8")) as object[];
    writeFileSync(
      list,
      JSON.stringify([{ ...known[0], id: "pbk_damaged", storage_key: "platform/damaged" }, ...known]),
    );
    writeFileSync(join(backups, "platform/damaged"), "damaged");
    await eventually(() => said.includes("cannot be opened with this key"), "it has looked at the newest one");
    await lost.destroy();
    restored = undefined;
    const platform = start(berthd("promote"), { env });
    children.push(platform);
    for (const stream of [platform.stdout, platform.stderr])
      stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await eventually(async () => (await ask(ground.ports.edge, "plain", "/")).body === "newer", "it serves");
    platform.kill("SIGTERM");
    await once(platform, "close");
    killProcesses(processesNaming(ground.dataDir));
    rmSync(ground.dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });

  function assertRefused({ stderr, exitCode }: ExecResult, reason: RegExp): void {
    assert.match(stderr, reason);
    assert.deepEqual([exitCode, stderr.includes("\n    at ")], [1, false], stderr);
  }

  /** Kills a restore once it has filled something. */
  async function interrupt(dataDir: string): Promise<void> {
    const child = start(berthd("restore", backups, "--key", key), { env: { ...inherited(), BERTH_DATA: dataDir } });
    await eventually(async () => existsSync(join(dataDir, "databases")), "the restore has begun");
    child.kill("SIGKILL");
    await once(child, "close");
  }
});

/** Makes a backup of the platform and waits for its end. */
async function backUp(platform: TestPlatform): Promise<void> {
  const asked = await platform.call<{ id: string }>("POST", "/v1/platform/backups");
  assert.equal(asked.status, 201, JSON.stringify(asked.body));
  type Backup = { id: string; status: string; problem: string | null };
  const made = await eventually(async () => {
    const { backups } = (await platform.call<{ backups: Backup[] }>("GET", "/v1/platform/backups")).body;
    return backups.find(({ id, status }) => id === asked.body.id && status !== "running");
  }, "the backup of the platform has ended");
  assert.deepEqual([made.status, made.problem], ["completed", null]);
  // The storage's list, by which another machine finds it, is written after the row.
  const list = join(platform.dataDir, "backups/platform/backups.json");
  await eventually(() => readTextOrEmpty(list).includes(made.id), "the storage lists the backup");
}

/** Waits until all that a project's database has committed so far is archived. */
async function archivedNow(platform: TestPlatform, slug: string): Promise<void> {
  const now = new Date().toISOString();
  await eventually(async () => {
    const path = `/v1/projects/${slug}/database/archive`;
    const { windows } = (await platform.call<{ windows: { to: string }[] }>("GET", path)).body;
    return (windows.at(-1)?.to ?? "") > now;
  }, `the archive of ${slug} is up to date`);
}
