import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { writeGitFiles } from "./git-files.ts";

let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "berth-files-"));
});
after(() => rm(root, { recursive: true, force: true }));

test("the socket's path fits into a socket address, however deep the folder lies", async () => {
  const { socketPath } = await writeGitFiles(join(root, "d".repeat(120)), 1000);
  assert.ok(Buffer.byteLength(socketPath) < 108, socketPath);
});

test("a socket that nobody listens on is removed, a living one is kept", async () => {
  const dir = join(root, "sockets");
  const { socketPath: living } = await writeGitFiles(dir, 1000);
  const server = createServer();
  await new Promise<void>((done) => server.listen(living, done));
  await writeGitFiles(dir, 1000);
  assert.ok((await readdir(dir)).includes(living.slice(dir.length + 1)));
  server.close();
});

test("written twice at once it is whole", async () => {
  const dir = join(root, "twice");
  await Promise.all([writeGitFiles(dir, 1000), writeGitFiles(dir, 1000)]);
  assert.deepEqual((await readdir(dir)).sort(), ["gitconfig", "hooks"]);
});

test("what a push has moved is on the disk when the pusher is told", async () => {
  const { configFile } = await writeGitFiles(join(root, "durable"), 1000);
  assert.match(await readFile(configFile, "utf8"), /^\tfsync = committed$/m);
});
