import assert from "node:assert/strict";
import { existsSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { run, runOk, start } from "../../src/kit/exec.ts";
import { eventually } from "../support/eventually.ts";
import { notesApp } from "./apps.ts";
import { berthd, createApp, layGround, startPlatform, type TestPlatform } from "./platform.ts";

// Drawn with other data files: it mounts file systems, which takes too long for every run.

type Branch = Result<"branches.create">;

function missing(): string | false {
  if (process.getuid?.() !== 0) return "only root can mount a file system";
  if (!existsSync("/usr/sbin/mkfs.xfs")) return "xfsprogs is not installed";
  return !readFileSync("/proc/filesystems", "utf8").includes("\txfs\n") && "this kernel has no XFS";
}

describe("the volume of databases", { skip: missing() }, () => {
  const settings = { BERTH_DISK_FLOOR_MIB: "16" };
  let platform: TestPlatform;

  before(async () => {
    platform = await startPlatform(settings);
    const app = await createApp(platform, "notes", notesApp);
    assert.equal((await platform.call("POST", "/v1/projects/notes/database")).status, 201);
    assert.equal((await app.push()).exitCode, 0);
    assert.equal((await platform.visit("notes", "/add")).body, "rows 1 file kept");
  });
  after(async () => {
    await platform?.end("SIGTERM");
    await volume("remove");
    await platform?.restart();
    await platform?.destroy();
  });

  const databases = () => join(platform.dataDir, "databases");
  const isMounted = () => statSync(databases()).dev !== statSync(platform.dataDir).dev;
  const serves = () =>
    eventually(async () => (await platform.visit("notes")).body === "rows 1 file kept", "the rows are there");

  /** On ports of its own, as those of the platform may be taken. */
  async function volume(...args: string[]) {
    const { env } = await layGround(settings, platform.dataDir);
    return run(berthd("volume", ...args), { env });
  }

  async function branch(name: string): Promise<Branch> {
    const { status, body } = await platform.call<Branch>("POST", "/v1/projects/notes/database/branches", { name });
    assert.equal(status, 201, JSON.stringify(body));
    await eventually(
      async () => (await platform.call("DELETE", `/v1/projects/notes/database/branches/${name}`)).status === 204,
      "it is ready",
    );
    return body;
  }

  it("is refused while the platform runs, without a size, and beyond the disk, and nothing changes", async () => {
    assert.match((await volume("1G")).stderr, /Berth runs on/);
    assert.match((await volume()).stderr, /Usage: berthd volume/);
    assert.match((await volume("300M")).stderr, /Usage: berthd volume/);
    await platform.end("SIGTERM");
    assert.match((await volume("900T")).stderr, /The disk has no room/);
    await platform.restart();
    await serves();
    assert.equal(isMounted(), false);
  });

  it("takes the databases, whose branches share blocks from then on", async () => {
    await platform.end("SIGTERM");
    const made = await volume("1G");
    assert.equal(made.exitCode, 0, made.stderr);
    assert.ok(isMounted());
    await platform.restart();
    await serves();
    assert.equal((await branch("try")).method, "clone");
  });

  it("is there again after a reboot, and after a kill between its last two steps", async () => {
    await platform.end("SIGTERM");
    // As a service of systemd with mounts of its own, or a container, keeps what was mounted when it began.
    const holder = start({ file: "unshare", args: ["--mount", "--propagation", "private", "sleep", "600"] });
    const mounts = (pid: number | "self") => readlinkSync(`/proc/${pid}/ns/mnt`);
    await eventually(async () => mounts(holder.pid ?? "self") !== mounts("self"), "it has mounts of its own");
    await runOk({ file: "umount", args: [databases()] });
    await runOk({ file: "cp", args: ["--archive", join(platform.dataDir, "ssh"), join(databases(), "left")] });
    await platform.restart();
    assert.ok(isMounted() && !existsSync(join(databases(), "left")));
    assert.ok(existsSync(join(platform.dataDir, "databases.before/left")), "nothing is deleted");
    holder.kill("SIGKILL");
    await serves();
  });

  it("grows while everything runs, and is taken away again", async () => {
    assert.match((await volume("1G")).stdout, /has 1 GiB now/);
    const grown = await volume("2G");
    assert.equal(grown.exitCode, 0, grown.stderr);
    const { stdout } = await runOk({ file: "df", args: ["--block-size=1M", "--output=size", databases()] });
    assert.ok(Number(stdout.split("\n")[1]) > 1800, stdout);
    await platform.end("SIGTERM");
    const removed = await volume("remove");
    assert.equal(removed.exitCode, 0, removed.stderr);
    assert.equal(isMounted(), false);
    await platform.restart();
    await serves();
  });
});
