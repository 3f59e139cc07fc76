import assert from "node:assert/strict";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { list } from "tar";
import { cliUser, type CliUser } from "../../test/support/cli.ts";
import { sampleBuild, sampleDeployment, samplePlan } from "../../test/support/contract-samples.ts";
import {
  goodToken,
  startScriptedPlatform,
  type Script,
  type SeenRequest,
} from "../../test/support/scripted-platform.ts";
import { runOk } from "../kit/exec.ts";

const files: Readonly<Record<string, string>> = {
  ".gitignore": "*.log\n!keep.log\n",
  ".berthignore": "docs/\n*.md\n",
  "README.md": "never sent",
  "@odd": "a name that tar would read as an archive",
  "debug.log": "ignored",
  "keep.log": "kept",
  "docs/a.txt": "left out by .berthignore",
  "lib/.gitignore": "secret\n",
  "lib/index.js": "1",
  "lib/secret": "ignored",
  "bin/start": "#!/bin/sh\n",
};
const expected = [
  ".berthignore",
  ".gitignore",
  "@odd",
  "bin/start",
  "current",
  "keep.log",
  "lib/.gitignore",
  "lib/index.js",
];

async function folderOf(user: CliUser): Promise<string> {
  const folder = join(user.home, "app");
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  await chmod(join(folder, "bin/start"), 0o755);
  await symlink("lib/index.js", join(folder, "current"));
  return folder;
}

function uploads(received: SeenRequest[]): Script {
  return {
    "builds.upload": (request) => {
      received.push(request);
      return { build_id: "bld_1", commit: "c".repeat(40), base: null, ahead: null, preview: null };
    },
    "builds.get": () => sampleBuild(),
    "builds.logs": () => ({
      build_id: "bld_1",
      status: "succeeded",
      log: "-----> Live\n",
      times: [],
      next_offset: 12,
      complete: true,
    }),
    "deployments.list": () => ({ deployments: [sampleDeployment({ trigger: "upload" })], next_cursor: null }),
  };
}

/** Returns the members of an archive: each path with its special attributes. */
async function membersOf(archive: Buffer): Promise<string[]> {
  const members: string[] = [];
  const reader = list({
    onReadEntry: ({ path, mode, type }) => members.push(`${path} ${type} ${((mode ?? 0) & 0o111) !== 0}`),
  });
  reader.end(archive);
  return members;
}

for (const withGit of [true, false]) {
  test(`deploy --dir sends what the ignore files leave, ${withGit ? "as git lists it" : "without git too"}`, async () => {
    const received: SeenRequest[] = [];
    await using platform = await startScriptedPlatform(uploads(received));
    await using user = await cliUser({ url: platform.url, token: goodToken });
    const folder = await folderOf(user);
    if (withGit) await runOk({ file: "git", args: ["init", "-q"] }, { cwd: folder, env: { ...user.env } });
    else {
      await mkdir(join(folder, "node_modules"));
      await writeFile(join(folder, "node_modules", "x"), "made by a package manager");
    }
    const { exitCode, stdout, stderr } = await user.berth(["deploy", "-p", "demo", "--dir", folder, "-m", "By hand"]);
    assert.equal(exitCode, 0, stderr);
    assert.equal(stdout, "-----> Live\nLive: deployment #1 of demo\n");
    const members = await membersOf(received[0]?.bytes ?? Buffer.alloc(0));
    assert.deepEqual(new Set(members.map((member) => member.split(" ")[0]?.slice(2))), new Set(expected));
    assert.ok(
      members.includes("./bin/start File true") && members.includes("./current SymbolicLink true"),
      members.join(),
    );
    assert.equal(received[0]?.query.get("message"), "By hand");
  });
}

test("deploy --dir of a folder that is missing or holds nothing is wrong usage", async () => {
  await using user = await cliUser({ url: "http://127.0.0.1:9", token: goodToken });
  for (const dir of ["missing", "."]) {
    const { exitCode } = await user.berth(["deploy", "-p", "demo", "--dir", join(user.home, dir)]);
    assert.equal(exitCode, 2);
  }
});

test("plan sends the repository around the current folder, prints the plan, and ends with 7 when a deploy would fail", async () => {
  const received: SeenRequest[] = [];
  let planned = samplePlan();
  await using platform = await startScriptedPlatform({
    "builds.plan-upload": (request) => {
      received.push(request);
      return planned;
    },
    "builds.plan": () => samplePlan({ commit: "c".repeat(40) }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const folder = await folderOf(user);
  await runOk({ file: "git", args: ["init", "-q"] }, { cwd: folder, env: { ...user.env } });
  const cwd = join(folder, "lib");
  const { exitCode, stdout, stderr } = await user.berth(["plan", "-p", "demo"], { cwd });
  assert.equal(exitCode, 0, stderr);
  assert.match(stdout, /^-----> These files on main: would be built and deployed\n-----> Static files detected\n/);
  const members = await membersOf(received[0]?.bytes ?? Buffer.alloc(0));
  assert.deepEqual(new Set(members.map((member) => member.split(" ")[0]?.slice(2))), new Set(expected));
  const failure = { stage: "detect", code: "nothing_to_run", summary: "Nothing.", hint: "Add.", log_tail: [] } as const;
  planned = samplePlan({ outcome: "fails", build: null, failure });
  const failing = await user.berth(["plan", "-p", "demo", "--json"], { cwd });
  assert.deepEqual([failing.exitCode, JSON.parse(failing.stdout).failure.code], [7, "nothing_to_run"]);
  assert.match((await user.berth(["plan", "main", "-p", "demo"])).stdout, /Commit cccccccc on main/);
});
