import assert from "node:assert/strict";
import { test } from "node:test";
import { parseHttpRequest, parseSshCommand, safeProtocol } from "./paths.ts";

const path = { organization_slug: "main", project_slug: "my-app" };

test("an SSH command is one of two verbs and one quoted path, with or without a leading slash", () => {
  assert.deepEqual(parseSshCommand("git-receive-pack '/main/my-app.git'"), { service: "git-receive-pack", path });
  assert.deepEqual(parseSshCommand("git-upload-pack 'main/my-app.git'"), { service: "git-upload-pack", path });
});

test("every other SSH command is refused", () => {
  const others = [
    "git-upload-archive '/main/my-app.git'",
    "git-upload-pack '/~ada/my-app.git'",
    "git-upload-pack '/main/my-app.git' --strict",
    "git-upload-pack --help '/main/my-app.git'",
    "git-upload-pack '/main/../other/my-app.git'",
    "git-upload-pack '/main/-app.git'",
    "git-upload-pack '/main/My-App.git'",
    "git-upload-pack '/main/my-app.git'\nid",
    "git-upload-pack '/main/my-app.git'; id",
    "git upload-pack '/main/my-app.git'",
    `git-upload-pack '/main/${"a".repeat(41)}.git'`,
    "",
  ];
  for (const other of others) assert.equal(parseSshCommand(other), null, other);
});

test("smart HTTP has three endpoints; a repository's other paths are the dumb protocol, other paths unknown", () => {
  const kind = (method: string, url: string) => parseHttpRequest(method, url).kind;
  assert.deepEqual(parseHttpRequest("GET", "/git/main/my-app.git/info/refs?service=git-upload-pack"), {
    kind: "advertise",
    service: "git-upload-pack",
    path,
  });
  assert.equal(kind("POST", "/git/main/my-app.git/git-receive-pack"), "call");
  assert.equal(kind("GET", "/git/main/my-app.git/info/refs"), "dumb");
  assert.equal(kind("GET", "/git/main/my-app.git/git-upload-pack"), "dumb");
  assert.equal(kind("POST", "/git/main/my-app.git/../x.git/git-upload-pack"), "dumb");
  assert.equal(kind("GET", "/git/main/my-app/info/refs?service=git-upload-pack"), "unknown");
  assert.equal(kind("GET", "/git/main%2Fmy-app.git/info/refs"), "unknown");
});

test("only plain protocol versions pass on to git", () => {
  assert.equal(safeProtocol("version=2"), "version=2");
  for (const bad of [undefined, "", "version=2\nX=1", "a".repeat(80), "$(id)"]) assert.equal(safeProtocol(bad), null);
});
