// Drawn with other git files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { testConfinement } from "../../../test/support/git-servers.ts";
import { makeRemote, serveHttps, serveSsh, withoutSshd, type RemoteFolder } from "../../../test/support/git-remotes.ts";
import { silentLog } from "../../kit/log.ts";
import { fingerprintOf } from "../../kit/ssh-fingerprint.ts";
import type { Remote, Repositories } from "../../ports/repositories.ts";
import { unconfined } from "../../sandbox/confine.ts";
import { createLocalRepositories } from "./local-repositories.ts";

const limits = { entries: 1000, bytes: 1024 ** 2 };
const project = "prj_followed";
const maxBytes = 64 * 1024 * 1024;
const never = new AbortController().signal;

let remote: RemoteFolder;
let dir: string;
let repositories: Repositories;

/** Repositories whose DNS requests return this machine. */
async function localRepositories(
  name: string,
  more: { confinement?: typeof unconfined; mayReach?: () => boolean } = {},
) {
  const { confinement = await testConfinement(), mayReach = () => true } = more;
  const addresses = { resolve: async () => ["127.0.0.1"], mayReach };
  const access = { addresses, certificates: remote.caFile };
  const made = await createLocalRepositories({ dir: join(dir, name), confinement, access, log: silentLog });
  await made.ensure(project);
  return made;
}

const wanted = (url: string, more: Partial<Remote> = {}): Remote => ({
  ...{ url, branch: "main", token: null, privateKey: null, hostKeys: null, hostKeyPin: null, known: null, maxBytes },
  ...more,
});

before(async () => {
  remote = await makeRemote();
  dir = await mkdtemp(join(tmpdir(), "berth-fetch-"));
  repositories = await localRepositories("repositories");
});
after(async () => {
  await remote.close();
  await rm(dir, { recursive: true });
});

async function fetched(from: Repositories, what: Remote) {
  const found = await from.fetch(project, what, never);
  assert.equal(found.outcome, "fetched", JSON.stringify(found));
  return found.outcome === "fetched" ? found : assert.fail();
}

async function failed(what: Remote, from = repositories): Promise<string> {
  const found = await from.fetch(project, what, never);
  return found.outcome === "failed" ? found.reason : assert.fail(found.outcome);
}

for (const kind of ["confined", "not confined"] as const)
  test(`a branch is fetched over HTTPS with its token, ${kind}, and lasts only when it is pinned`, async () => {
    const token = "glpat-s3cret";
    const server = await serveHttps(remote, { token });
    try {
      const from = kind === "confined" ? repositories : await localRepositories("plain", { confinement: unconfined });
      const commit = await remote.push(`hello ${kind}`);
      const what = wanted(server.url, { token });
      const dropped = await fetched(from, what);
      await from.discard(project, dropped.quarantine);
      await assert.rejects(async () => {
        const inspected = await from.inspect(project, commit, null, limits);
        assert.equal(inspected.outcome, "fine");
      });
      const found = await fetched(from, what);
      assert.equal(found.commit, commit);
      await from.pin(project, "follow", commit, found.quarantine);
      await from.discard(project, found.quarantine);
      const inspected = await from.inspect(project, commit, null, limits);
      assert.deepEqual(inspected.outcome === "fine" && inspected.message, `Say hello ${kind}`);
      const again = await from.fetch(project, { ...what, known: commit }, never);
      assert.deepEqual(again, { outcome: "unchanged", commit, hostKeys: null });
      const reason = await failed(wanted(server.url, { token: "another" }), from);
      assert.match(reason, /needs a token with the right to read/);
      assert.ok(!reason.includes("another"));
    } finally {
      await server.close();
    }
  });

test("only the address that was looked up and allowed is reached", async () => {
  const server = await serveHttps(remote);
  try {
    const closed = await localRepositories("closed", { mayReach: () => false });
    assert.match(await failed(wanted(server.url), closed), /private or the platform's own/);
  } finally {
    await server.close();
  }
});

test("a redirect is not followed, wherever it leads", async () => {
  let requests = 0;
  const other = await serveHttps(remote, { intercept: () => ((requests += 1), false) });
  const server = await serveHttps(remote, {
    intercept: ({ url }, response) => {
      response.writeHead(302, { location: `https://localhost:${other.port}${url ?? ""}` }).end();
      return true;
    },
  });
  try {
    await remote.push("redirected");
    assert.match(await failed(wanted(server.url)), /redirect/);
    assert.equal(requests, 0);
  } finally {
    await server.close();
    await other.close();
  }
});

test("what is larger than allowed is cut off, and nothing of it stays", async () => {
  const server = await serveHttps(remote);
  try {
    const noise = Array.from({ length: 12 * 32_768 }, () => Math.random().toString(36).slice(2)).join("\n");
    await remote.push(noise, { branch: "large", file: "noise.txt" });
    const reason = await failed(wanted(server.url, { branch: "large", maxBytes: 1024 * 1024 }));
    assert.match(reason, /more than 1 MiB/);
    const objects = join(dir, "repositories", project, "objects");
    assert.deepEqual(
      (await readdir(objects)).filter((name) => name.startsWith("incoming")),
      [],
    );
  } finally {
    await server.close();
  }
});

test("what is wrong is said: no such branch, no server, no trust", async () => {
  const server = await serveHttps(remote);
  const { port } = server;
  try {
    await remote.push("there");
    assert.match(await failed(wanted(server.url, { branch: "missing" })), /no branch missing/);
    assert.match(await failed(wanted(`https://localhost:${port}/other.git`)), /no such repository/i);
    assert.match(await failed(wanted(`https://elsewhere.test:${port}/app.git`)), /certificate/);
  } finally {
    await server.close();
  }
  assert.match(await failed(wanted(`https://localhost:${port}/app.git`)), /refused the connection/);
});

describe("over SSH", { skip: withoutSshd }, () => {
  test("the deploy key lets in, and the host must show the key that it showed first", async () => {
    const key = await repositories.makeDeployKey("berth demo");
    assert.match(key.publicKey, /^ssh-ed25519 \S+ berth demo$/);
    const [first, second] = [await serveSsh(remote, key.publicKey), await serveSsh(remote, key.publicKey)];
    try {
      const commit = await remote.push("by ssh");
      const found = await fetched(repositories, wanted(first.url, { privateKey: key.privateKey }));
      await repositories.discard(project, found.quarantine);
      assert.equal(found.commit, commit, first.log());
      assert.match(found.hostKeys ?? "", /^repository ssh-ed25519 /);
      const pinned = { privateKey: key.privateKey, hostKeys: found.hostKeys };
      const again = await fetched(repositories, wanted(first.url, pinned));
      await repositories.discard(project, again.quarantine);
      assert.match(await failed(wanted(second.url, pinned)), /another key than before/);
      const hostKeyPin = fingerprintOf(found.hostKeys);
      const known = { privateKey: key.privateKey, hostKeyPin };
      const set = await fetched(repositories, wanted(first.url, known));
      await repositories.discard(project, set.quarantine);
      assert.match(
        await failed(wanted(second.url, known)),
        /presents the key SHA256:\S+, but the project expects SHA256:/,
      );
      const stranger = await repositories.makeDeployKey("stranger");
      assert.match(await failed(wanted(first.url, { privateKey: stranger.privateKey })), /refused the deploy key/);
    } finally {
      await first.close();
      await second.close();
    }
  });
});
