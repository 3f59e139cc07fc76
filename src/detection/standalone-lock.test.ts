import assert from "node:assert/strict";
import { test } from "node:test";
import { standaloneLock } from "./standalone-lock.ts";

const integrity = `sha512-${"A".repeat(86)}==`;
const entry = { version: "1.0.0", resolved: "https://packages.example/a/-/a-1.0.0.tgz", integrity };
const lockOf = (packages: Record<string, unknown>, more = {}) =>
  JSON.stringify({
    name: "app",
    version: "1.0.0",
    lockfileVersion: 3,
    requires: true,
    packages: { "": { name: "app", dependencies: { a: "^1.0.0" } }, ...packages },
    ...more,
  });
const plain = lockOf({ "node_modules/a": entry });

test("the same packages give the same text, whatever their application is called", () => {
  const other = lockOf({ "node_modules/a": entry }, { name: "other", version: "2.0.0" }).replace('"name":"app",', "");
  assert.equal(standaloneLock(plain), standaloneLock(other));
  assert.doesNotMatch(standaloneLock(plain) ?? "app", /"name"/);
});

test("another digest, another version or another wish gives another text", () => {
  const texts = [
    plain,
    lockOf({ "node_modules/a": { ...entry, integrity: `sha512-${"B".repeat(86)}==` } }),
    lockOf({ "node_modules/a": { ...entry, version: "1.0.1" } }),
    plain.replace("^1.0.0", "^1.0.1"),
  ].map((text) => standaloneLock(text));
  assert.ok(!texts.includes(null));
  assert.equal(new Set(texts).size, texts.length);
});

test("an address is not needed: the registry of the platform then says it", () => {
  assert.notEqual(standaloneLock(lockOf({ "node_modules/a": { version: "1.0.0", integrity } })), null);
});

test("what the text alone does not decide is not shared", () => {
  const taken = {
    "a script to run": lockOf({ "node_modules/a": { ...entry, hasInstallScript: true } }),
    "no digest": lockOf({ "node_modules/a": { ...entry, integrity: undefined } }),
    "a weak digest": lockOf({ "node_modules/a": { ...entry, integrity: "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=" } }),
    "a second digest": lockOf({ "node_modules/a": { ...entry, integrity: `${integrity} ${integrity}` } }),
    "a password": lockOf({ "node_modules/a": { ...entry, resolved: "https://user:word@packages.example/a.tgz" } }),
    "a token": lockOf({ "node_modules/a": { ...entry, resolved: "https://packages.example/a.tgz?token=1" } }),
    "an open line": lockOf({ "node_modules/a": { ...entry, resolved: "http://packages.example/a.tgz" } }),
    "a file": lockOf({ "node_modules/a": { ...entry, resolved: "file:../a.tgz" } }),
    "a repository": lockOf({ "node_modules/a": { ...entry, resolved: "git+ssh://git@example.com/a.git#1" } }),
    "a link": lockOf({ "node_modules/a": { resolved: "packages/a", link: true }, "packages/a": {} }),
    "a folder of the source": lockOf({ "packages/a": entry }),
    "a path that leaves the folder": lockOf({ "node_modules/../../a": entry }),
    "no version": lockOf({ "node_modules/a": { ...entry, version: "file:../a" } }),
    "an old format": lockOf({ "node_modules/a": entry }, { lockfileVersion: 1 }),
    "no packages": JSON.stringify({ lockfileVersion: 3 }),
    "no JSON": "{",
  };
  for (const [what, text] of Object.entries(taken)) assert.equal(standaloneLock(text), null, what);
});
