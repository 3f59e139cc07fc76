import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "../../src/kit/exec.ts";
import { eventually } from "../support/eventually.ts";
import { createApp, nodeApp, startPlatform, type TestPlatform } from "./platform.ts";
import { killProcesses, listProcesses } from "./processes.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

const tmux = ["/usr/bin/tmux", "/usr/local/bin/tmux"].find((file) => existsSync(file));
const withoutTmux = tmux === undefined ? "tmux is not installed" : false;
const cli = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

let platform: TestPlatform;
let folder: string;

before(async () => {
  if (tmux === undefined) return;
  folder = mkdtempSync(join(tmpdir(), "berth-tmux-"));
  platform = await startPlatform();
  const app = await createApp(platform, "shell", nodeApp("hello"));
  await platform.call("POST", "/v1/projects/shell/database");
  assert.equal((await app.push()).exitCode, 0);
});
after(async () => {
  if (tmux === undefined) return;
  await inTmux("kill-server").catch(() => {});
  await platform.destroy();
  rmSync(folder, { recursive: true, force: true });
});

const inTmux = (...args: string[]) =>
  run({ file: tmux ?? "", args: ["-S", join(folder, "socket"), "-f", "/dev/null", ...args] }, {});

/** Opens a shell in a tmux window of 90 by 25 characters, with `path` as its PATH. */
async function openWindow(name: string, path = process.env["PATH"] ?? "") {
  const login = {
    BERTH_URL: platform.api,
    BERTH_TOKEN: platform.token,
    HOME: folder,
    PATH: path,
    PS1: "> ",
    LC_ALL: "C",
  };
  const env = Object.entries(login).flatMap(([key, value]) => ["-e", `${key}=${value}`]);
  await inTmux("new-session", "-d", "-s", name, "-x", "90", "-y", "25", ...env, "/bin/sh");
  await inTmux("set", "-t", name, "status", "off");
  const shown = async () => (await inTmux("capture-pane", "-p", "-t", name)).stdout;
  return {
    /** Runs the CLI and then prints its exit code. */
    berth: (words: string) =>
      inTmux("send-keys", "-t", name, `'${process.execPath}' '${cli}' ${words}; echo ended=$?`, "Enter"),
    types: (text: string) => inTmux("send-keys", "-t", name, "-l", `${text}\n`),
    presses: (key: string) => inTmux("send-keys", "-t", name, key),
    resize: (columns: number, rows: number) =>
      inTmux("resize-window", "-t", name, "-x", String(columns), "-y", String(rows)),
    async sees(pattern: RegExp) {
      const probe = async () => pattern.test(await shown());
      await eventually(probe, `the window shows ${pattern}`).catch(async (error: Error) => {
        throw new Error(`${error.message}; it shows:\n${await shown()}`, { cause: error });
      });
    },
  };
}

/** Returns the processes that run `sleep` with this argument, in any sandbox. */
const running = (marker: string) => listProcesses().filter(({ commandLine }) => commandLine === `sleep ${marker}`);
const isRunning = (marker: string) => eventually(() => running(marker).length > 0, `sleep ${marker} runs`);
const isGone = (marker: string) => eventually(() => running(marker).length === 0, `sleep ${marker} is gone`);

test("a shell in a real terminal gets its size, a resize, Ctrl-C and Ctrl-D", { skip: withoutTmux }, async () => {
  const window = await openWindow("keys");
  await window.berth("run -p shell -it -- bash --norc");
  await window.sees(/bash-[\d.]+[$#]/);
  await window.types("stty size");
  await window.sees(/^25 90$/m);
  await window.resize(120, 40);
  await window.types("until [ \"$(stty size)\" = '40 120' ]; do :; done; stty size");
  await window.sees(/^40 120$/m);
  await window.types("sleep 716253");
  await isRunning("716253");
  await window.presses("C-c");
  await isGone("716253");
  await window.types("echo code=$?");
  await window.sees(/^code=130$/m);
  await window.types("(exit 5)");
  await window.presses("C-d");
  await window.sees(/^ended=5$/m);
});

test("a command leaves no process behind when its CLI is killed", { skip: withoutTmux }, async () => {
  const window = await openWindow("cli");
  await window.berth("run -p shell -it -- sleep 716254");
  await isRunning("716254");
  killProcesses(
    listProcesses().filter(({ commandLine }) => commandLine.includes(`${cli} run -p shell -it -- sleep 716254`)),
  );
  await window.sees(/^ended=137$/m);
  await isGone("716254");
});

test("without psql on this machine, db psql runs one beside the application", { skip: withoutTmux }, async () => {
  const bin = join(folder, "bin");
  if (!existsSync(bin)) symlinkSync("/nowhere", bin);
  const window = await openWindow("psql", bin);
  await window.berth("db psql -p shell -- -X");
  await window.sees(/=> *$/m);
  await window.types("select 6 * 7 as answer;");
  await window.sees(/^ *42$/m);
  await window.types("\\q");
  await window.sees(/^ended=0$/m);
  await window.berth("db psql -p shell -- -XAtc 'select 6 * 8'");
  await window.sees(/^48$/m);
});

test("a command leaves no process behind when the control plane is killed", { skip: withoutTmux }, async () => {
  const window = await openWindow("plane");
  await window.berth("run -p shell -it -- sleep 716255");
  await isRunning("716255");
  await platform.end("SIGKILL");
  await window.sees(/^ended=1$/m);
  await isGone("716255");
  await platform.restart();
  const statusOfRun = async () => {
    type Runs = { runs?: { command: string; status: string }[] };
    const { body } = await platform.call<Runs>("GET", "/v1/projects/shell/runs");
    return body.runs?.find(({ command }) => command === "sleep 716255")?.status;
  };
  await eventually(async () => (await statusOfRun()) === "interrupted", "the run is interrupted");
});
