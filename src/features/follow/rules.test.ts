import assert from "node:assert/strict";
import { test } from "node:test";
import { repositoryUrl } from "../../contract/follow.ts";
import { fingerprintOf } from "../../kit/ssh-fingerprint.ts";
import { providerOf, readHook, readHostKey, retryAfterMs, statusRequest, type CommitStatus } from "./rules.ts";

test("an address has one spelling, and none with a password, a query or another scheme", () => {
  const spelled = {
    "git@github.com:acme/shop.git": "ssh://git@github.com/acme/shop.git",
    "ssh://git@git.test:2222/acme/shop.git": "ssh://git@git.test:2222/acme/shop.git",
    "ssh://git.test/~ada/shop": "ssh://git@git.test/~ada/shop",
    "https://GitHub.com/acme/shop": "https://github.com/acme/shop",
  };
  for (const [given, url] of Object.entries(spelled)) assert.equal(repositoryUrl(given), url);
  for (const given of [
    ...["http://github.com/a/b", "git://github.com/a/b", "file:///etc", "ext::sh -c true", "/srv/shop.git", "../shop"],
    ...[
      "https://ada:word@github.com/a/b",
      "https://ada@github.com/a/b",
      "https://github.com/a?b",
      "https://github.com/",
    ],
    ...["ssh://-oProxyCommand=x/a", "ssh://git@host/$(id)", "-u git@host:a", "git@host:--upload-pack=x;y"],
  ])
    assert.equal(repositoryUrl(given), null, given);
});

test("the kind of a host is found by its name", () => {
  const kinds = {
    "ssh://git@github.com/a/b": "github",
    "https://gitlab.com/a/b": "gitlab",
    "https://gitlab.example.com/a/b": "gitlab",
    "https://codeberg.org/a/b": "gitea",
    "https://gitea.example.com/a/b": "gitea",
    "https://git.example.com/a/b": "other",
    "https://notgithub.com/a/b": "other",
  };
  for (const [url, kind] of Object.entries(kinds)) assert.equal(providerOf(url), kind, url);
});

const wanted = { branch: "main", previews: null, deploy_branch: null };

test("without a signature nothing is read, whatever the headers say", () => {
  const body = Buffer.from('{"ref":"refs/heads/main"}');
  for (const headers of [
    {},
    { "x-github-event": "push" },
    { "x-github-event": "push", "x-hub-signature-256": "sha256=" },
    { "x-gitlab-event": "Push Hook", "x-gitlab-token": "" },
    { "x-gitlab-event": "Push Hook", "webhook-id": "a", "webhook-timestamp": "1", "webhook-signature": "v1," },
  ]) {
    const read = readHook("whsec_AAAA", wanted, { headers, body });
    assert.ok(read.outcome === "ignored" && !read.signed, JSON.stringify(headers));
  }
});

test("a commit status goes to the host's own API", () => {
  const commit = "c".repeat(40);
  const of = (url: string, provider: CommitStatus["provider"], state: CommitStatus["state"] = "failure") => {
    const status = { url, provider, commit, context: "shop", state, description: "d", targetUrl: "http://berth.test" };
    const request = statusRequest(status, "t0ken");
    return {
      ...request,
      headers: request.headers as Record<string, string>,
      body: JSON.parse(request.body) as Record<string, string>,
    };
  };
  const github = of("ssh://git@github.com/acme/shop.git", "github");
  assert.equal(github.url, `https://api.github.com/repos/acme/shop/statuses/${commit}`);
  assert.deepEqual(
    [github.headers["authorization"], github.body["state"], github.body["context"]],
    ["Bearer t0ken", "failure", "berth/shop"],
  );
  assert.equal(
    of("https://github.example.com/a/b", "github").url,
    `https://github.example.com/api/v3/repos/a/b/statuses/${commit}`,
  );
  const gitlab = of("ssh://git@gitlab.example.com:2222/group/sub/shop.git", "gitlab", "pending");
  assert.equal(gitlab.url, `https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fshop/statuses/${commit}`);
  assert.deepEqual([gitlab.headers["private-token"], gitlab.body["state"]], ["t0ken", "running"]);
  assert.equal(
    of("https://git.example.com:3000/a/b.git", "gitea").url,
    `https://git.example.com:3000/api/v1/repos/a/b/statuses/${commit}`,
  );
});

test("a host's key is given as its fingerprint, its public key or a line of known_hosts", () => {
  const key = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
  const pin = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU";
  const line = `repository ssh-ed25519 ${key}\n`;
  assert.deepEqual(readHostKey(` ${pin} `), { pin, line: null });
  const other = Buffer.from(`\0\0\0\x13ecdsa-sha2-nistp256${"k".repeat(60)}`).toString("base64");
  assert.equal(readHostKey(`ecdsa-sha2-nistp256 ${other}`)?.line, `repository ecdsa-sha2-nistp256 ${other}\n`);
  for (const text of [`ssh-ed25519 ${key}`, `github.com ssh-ed25519 ${key}`, `ssh-ed25519 ${key} a comment`])
    assert.deepEqual(readHostKey(text), { pin, line }, text);
  for (const text of [
    "",
    "SHA256:short",
    `ssh-rsa ${key}`,
    key,
    `@revoked github.com ssh-ed25519 ${key}`,
    `ssh-dss ${key}`,
  ])
    assert.equal(readHostKey(text), null, text);
});

test("a host's key is shown as OpenSSH shows it, and a failing fetch is tried later and later", () => {
  assert.equal(fingerprintOf("repository ssh-ed25519 AAAA\n"), "SHA256:cJ6AyISHokEeHuTfufIqhhSS0gxHZRUMDHlKvXD4FHw");
  assert.equal(fingerprintOf(null), null);
  const pauses = [1, 2, 3, 4, 9].map((failures) => retryAfterMs(failures, 600_000));
  assert.deepEqual(pauses, [15_000, 60_000, 240_000, 600_000, 600_000]);
});
