import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { createLocalRepositories } from "../../src/adapters/repositories-local/local-repositories.ts";
import { createGitServers, type GitServers } from "../../src/git/git-servers.ts";
import { silentLog } from "../../src/kit/log.ts";
import type { Inspection, Repositories } from "../../src/ports/repositories.ts";
import {
  commitFile,
  git,
  makeKey,
  makeWorkTree,
  project,
  ScriptedGate,
  testConfinement,
  tryGit,
} from "../support/git-servers.ts";

const limits = { entries: 200_000, bytes: 1024 ** 3 };
const gate = new ScriptedGate();
let root: string;
let repositories: Repositories;
let servers: GitServers;
let keyFile: string;
let work: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "berth-pinned-"));
  const confinement = await testConfinement();
  repositories = await createLocalRepositories({ dir: join(root, "repositories"), confinement, log: silentLog });
  await repositories.ensure(project.id);
  servers = await createGitServers({
    gate,
    confinement,
    repositories,
    dir: join(root, "git"),
    hostKeyFile: join(root, "ssh", "host"),
    ssh: { host: "127.0.0.1", port: 0 },
    log: silentLog,
  });
  await servers.listen();
  const key = await makeKey(root, "ed25519");
  keyFile = key.keyFile;
  gate.register(key.fingerprint);
  work = await makeWorkTree(root, "app");
});
after(async () => {
  await servers.close(0);
  await rm(root, { recursive: true, force: true });
});

const push = (...refs: string[]) =>
  tryGit(root, ["-C", work, "push", `ssh://git@127.0.0.1:${servers.port}/main/demo.git`, ...refs], { keyFile });

test("a commit is inspected and pinned in quarantine, built from the pin, and then pushed", async () => {
  const id = await commitFile(root, work, "big.bin", randomBytes(300_000));
  let inspection: Inspection | undefined;
  let tarBytes = 0;
  gate.receive = async ({ quarantine }) => {
    inspection = await repositories.inspect(project.id, id, quarantine, limits);
    await repositories.pin(project.id, "bld_1", id, quarantine);
    tarBytes = (await buffer(repositories.archive(project.id, id))).length;
    return { accepted: true, head: "main" };
  };
  const pushed = await push("main");
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.equal(inspection?.outcome, "fine");
  assert.ok(tarBytes > 300_000);
  assert.equal(await repositories.resolve(project.id, "refs/heads/main"), id);
  await repositories.unpin(project.id, "bld_1");
  await git(root, ["-C", await repositories.ensure(project.id), "fsck", "--strict", "--no-dangling"]);
});

test("a refused push that was pinned can be pushed again", async () => {
  const id = await commitFile(root, work, "again.txt", "again");
  gate.receive = async ({ quarantine }) => {
    await repositories.pin(project.id, "bld_2", id, quarantine);
    return { accepted: false };
  };
  assert.notEqual((await push("main")).exitCode, 0);
  await git(root, ["-C", await repositories.ensure(project.id), "cat-file", "-e", id]);
  gate.receive = async () => ({ accepted: true });
  assert.equal((await push("main")).exitCode, 0);
  assert.equal(await repositories.resolve(project.id, "refs/heads/main"), id);
});
