import assert from "node:assert/strict";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeWorkTree, project, ScriptedGate, startGitHost, tryGit } from "../../test/support/git-servers.ts";
import { startNode } from "../../test/support/node-process.ts";
import { start } from "../kit/exec.ts";
import { until } from "../kit/until.ts";
import { writeGitFiles } from "./git-files.ts";
import { guardMs } from "../../test/support/eventually.ts";
import { testFolder } from "../../test/support/test-folder.ts";

const script = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const lostText = /remote: {2}! {5}Berth is restarting; nothing was changed, push again/;
const root = testFolder("hook");

/** Runs the hook alone; the control plane answers with these lines and this decision, or not at all. */
async function ask(answer: { lines?: string; decision?: string } | null, options: readonly string[] = []) {
  const { hooksDir } = await writeGitFiles(join(root, "git"), 1000);
  const env = Object.fromEntries(options.map((option, index) => [`GIT_PUSH_OPTION_${index}`, option]));
  const file = join(hooksDir, "pre-receive");
  const given = { GIT_PUSH_OPTION_COUNT: String(options.length), ...env };
  const child = start({ file, args: [] }, { pipes: 2, env: { ...process.env, ...given } as Record<string, string> });
  const [question, lines] = child.stdio.slice(3) as unknown as Duplex[];
  assert.ok(question && lines);
  let asked = "";
  question.on("data", (chunk: Buffer) => (asked += chunk.toString()));
  child.stdin.end("a b refs/heads/main\n");
  const shown = text(child.stdout);
  const ended = once(child, "exit");
  if (answer !== null) assert.ok(await until(() => asked.endsWith("\n.\n") || undefined, { timeoutMs: guardMs }));
  lines.end(answer?.lines ?? "");
  question.end(answer?.decision ?? "");
  const [code] = (await ended) as [number];
  question.destroy();
  return { code, shown: await shown, asked };
}

test("only the word accepted ends the hook with 0, after the lines for the pusher", async () => {
  const accepted = await ask({ lines: "-----> Live\n", decision: "accepted\n" });
  assert.deepEqual([accepted.code, accepted.shown], [0, "-----> Live\n"]);
  assert.equal(accepted.asked, "\n\n\ndeploy\na b refs/heads/main\n.\n");
});

test("of push options only one word is asked, whatever their text is", async () => {
  for (const [options, word] of [
    [["plan"], "plan"],
    [["plan", "plan"], "plan"],
    [["plan", "ci.skip"], "unknown"],
    [["x\n0 1 refs/heads/main\n.\n"], "unknown"],
    [["$(touch here)`;"], "unknown"],
  ] as const) {
    const { asked } = await ask({ decision: "refused\n" }, options);
    assert.equal(asked, `\n\n\n${word}\na b refs/heads/main\n.\n`);
  }
});

test("every other answer ends it with 1", async () => {
  for (const answer of [
    null,
    {},
    { decision: "refused\n" },
    { decision: "accept" },
    { lines: "accepted\n" },
    { decision: "\n" },
  ])
    assert.equal((await ask(answer)).code, 1, JSON.stringify(answer));
});

test("kill -9 of Berth while a push is decided changes nothing, and the same push works afterwards", async () => {
  const dir = join(root, "killed");
  const child = startNode([script("../../test/support/git-host-process.ts"), dir]);
  const [url = ""] =
    (await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()).value?.split("\n") ?? [];
  const work = await makeWorkTree(dir, "killed");
  let shown = "";
  const onStderr = (chunk: Buffer) => {
    shown += chunk.toString();
    if (shown.includes("-----> Deciding")) child.kill("SIGKILL");
  };
  const pushed = await tryGit(dir, ["-C", work, "push", url, "main"], { onStderr });
  assert.notEqual(pushed.exitCode, 0);
  const repository = join(dir, "repositories", project.id);
  assert.notEqual(
    (await tryGit(dir, ["-C", repository, "rev-parse", "--verify", "-q", "refs/heads/main"])).exitCode,
    0,
  );

  const host = await startGitHost(new ScriptedGate(), {}, dir);
  const again = await tryGit(dir, ["-C", work, "push", host.httpUrl(), "main"]);
  assert.equal(again.exitCode, 0, again.stderr);
  assert.equal((await stat(join(dir, "ssh", "host_ed25519"))).mode & 0o777, 0o600);
  await host.close();
});

test("a pusher reads that Berth restarts when it stops in the middle of a push", async () => {
  const gate = new ScriptedGate();
  const host = await startGitHost(gate);
  const work = await makeWorkTree(host.root, "stopped");
  gate.receive = async ({ signal }) => {
    void host.servers.close(0);
    await once(signal, "abort");
    return { accepted: false };
  };
  const pushed = await tryGit(host.root, ["-C", work, "push", host.httpUrl(), "main"], { timeoutMs: guardMs });
  assert.deepEqual([pushed.exitCode === 0, pushed.timedOut], [false, false]);
  assert.match(pushed.stderr, lostText);
  await host.close();
});
