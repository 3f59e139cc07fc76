import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { sampleProject } from "../../test/support/contract-samples.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import { systemPath } from "../kit/exec.ts";
import { readEnvironment } from "./environment.ts";
import { runCommandLine } from "./run-command-line.ts";

const active = {
  id: "dep_1",
  number: 1,
  status: "active",
  commit: "a".repeat(40),
  activated_at: "2026-01-31T09:00:00.000Z",
};

test("berth open prints the URL, and opens it in a browser only for a person who watches and wants one", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "berth-open-"));
  t.after(() => rm(folder, { recursive: true }));
  const opened = join(folder, "opened");
  await writeFile(join(folder, "xdg-open"), `#!/bin/sh\necho "$1" >> "${opened}"\n`);
  await chmod(join(folder, "xdg-open"), 0o755);
  let project = sampleProject({ active_deployment: active as never });
  await using platform = await startScriptedPlatform({ "projects.get": () => project });
  const open = async (isTty: { stdout: boolean; stderr: boolean }, ...more: string[]) => {
    const env = { PATH: `${folder}:${systemPath}`, HOME: folder, BERTH_URL: platform.url, BERTH_TOKEN: goodToken };
    const stream = (isTTY: boolean) => Object.assign(new PassThrough(), { isTTY });
    const [stdout, stderr] = [stream(isTty.stdout), stream(isTty.stderr)];
    const streams = { stdin: new PassThrough(), stdout, stderr };
    const environment = { ...readEnvironment(env), cwd: folder, ...streams } as never;
    assert.equal(await runCommandLine(["open", "demo", ...more], environment, new AbortController().signal), 0);
    assert.match(String(stdout.read()), new RegExp(RegExp.escape(project.url)));
    return (await readFile(opened, "utf8").catch(() => "")).split("\n").length - 1;
  };
  const [person, piped, unseen] = [
    { stdout: true, stderr: true },
    { stdout: false, stderr: true },
    { stdout: true, stderr: false },
  ];
  assert.equal(await open(piped), 0);
  assert.equal(await open(unseen), 0);
  assert.equal(await open(person, "--no-browser"), 0);
  assert.equal(await open(person), 1);
  project = sampleProject({ active_deployment: null });
  assert.equal(await open(person), 1);
});
