import assert from "node:assert/strict";
import { test } from "node:test";
import { askedVersions, versionNotes, type VersionedTool } from "./asked-versions.ts";
import { testTree } from "../../test/support/source-tree.ts";

const notes = (tool: VersionedTool, used: string, files: Record<string, string>) =>
  versionNotes(askedVersions(testTree(files), tool), "It", used).join("\n");

test("a version that the source asks for and the machine lacks is named, and one that fits is not", () => {
  const used = "3.11.2";
  for (const files of [
    { ".python-version": "# why\n3.9\n" },
    { "runtime.txt": "python-3.9.18\n" },
    { ".tool-versions": "nodejs 20\npython 3.9.1\n" },
    { "mise.toml": '[tools]\npython = "3.9"\n' },
    { Pipfile: '[requires]\npython_version = "3.9"\n' },
  ]) {
    assert.match(notes("python", used, files), /asks for It .*3\.9\S*: It 3\.11\.2 is used/, JSON.stringify(files));
    const fitting = Object.fromEntries(
      Object.entries(files).map(([name, text]) => [name, text.replace(/3\.9[.\d]*/, "3.11")]),
    );
    assert.equal(notes("python", used, fitting), "");
  }
  assert.match(
    notes("go", "1.24.4", { "go.mod": "module x\ngo 1.20\ntoolchain go1.25.1\n" }),
    /go\.mod asks for It 1\.25\.1/,
  );
  assert.equal(notes("ruby", "3.2.1", { ".ruby-version": "ruby-3.2.1p9" }), "");
});

test("composer.json's platform and .java-version are compared, too", () => {
  const composer = JSON.stringify({ require: { php: ">=8" }, config: { platform: { "ext-a": "1", php: "7.4.3" } } });
  assert.match(
    notes("php", "8.4", { "composer.json": composer }),
    /^composer\.json asks for It 7\.4\.3: It 8\.4 is used/,
  );
  assert.match(notes("java", "17.0.2", { ".java-version": "seventeen" }), /^\.java-version says "seventeen"/);
});

test("a version that cannot be read is named, too", () => {
  for (const text of ["pypy3.9-7.3", "3.9;", "./env"])
    assert.match(
      notes("python", "3.11.2", { ".python-version": text }),
      /^\.python-version says ".*", which Berth cannot read/,
    );
  assert.equal(notes("python", "3.11.2", { ".python-version": "# none\n" }), "");
});
