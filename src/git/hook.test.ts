import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  commitFile,
  makeWorkTree,
  project,
  ScriptedGate,
  startGitHost,
  tryGit,
} from "../../test/support/git-servers.ts";
import { run, start } from "../kit/exec.ts";

const script = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const lostText = /remote: {2}! {5}Berth is restarting; nothing was changed, push again/;
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "berth-hook-"));
});
after(() => rm(root, { recursive: true, force: true }));

/** Runs the hook alone against a server that answers as `listener` does. */
async function ask(name: string, listener: RequestListener | null) {
  const socket = join(root, `${name}.sock`);
  const server = listener === null ? null : createServer(listener);
  if (server !== null) await new Promise<void>((done) => server.listen(socket, done));
  const env = { BERTH_HOOK_SOCKET: socket, BERTH_PUSH_ID: "x" };
  const result = await run(
    { file: process.execPath, args: [script("./hook.mjs")] },
    { env, stdin: "", timeoutMs: 20_000 },
  );
  server?.close();
  return result;
}

test("only a complete answer that says accepted ends the hook with 0", async () => {
  const accepted = await ask("accepted", (_req, res) => {
    res.writeHead(200, { trailer: "x-decision" });
    res.write("-----> Live\n");
    res.addTrailers({ "x-decision": "accepted" });
    res.end();
  });
  assert.deepEqual([accepted.exitCode, accepted.stdout], [0, "-----> Live\n"]);
});

test("every other answer ends it with 1", async () => {
  const answers: Record<string, RequestListener | null> = {
    nobody: null,
    forbidden: (_req, res) => res.writeHead(403).end(),
    noTrailer: (_req, res) => res.writeHead(200).end("-----> Live\n"),
    broken: (_req, res) => {
      res.writeHead(200, { trailer: "x-decision" });
      res.write("-----> Live\n", () => res.destroy());
    },
    refused: (_req, res) => {
      res.writeHead(200, { trailer: "x-decision" });
      res.addTrailers({ "x-decision": "refused" });
      res.end();
    },
    closed: (req) => req.socket.destroy(),
  };
  for (const [name, listener] of Object.entries(answers)) assert.equal((await ask(name, listener)).exitCode, 1, name);
});

test("kill -9 of Berth while a push is decided changes nothing, and the same push works afterwards", async () => {
  const dir = join(root, "killed");
  const child = start({ file: process.execPath, args: [script("../../test/support/git-host-process.ts"), dir] });
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

test("a pusher is told that Berth restarts when the hooks' socket is gone", async () => {
  const host = await startGitHost(new ScriptedGate());
  const work = await makeWorkTree(host.root, "gone");
  await commitFile(host.root, work, "x", "x");
  for (const name of await readdir(join(host.root, "git")))
    if (name.endsWith(".sock")) await rm(join(host.root, "git", name));
  const pushed = await tryGit(host.root, ["-C", work, "push", host.httpUrl(), "main"]);
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, lostText);
  await host.close();
});
