import assert from "node:assert/strict";
import { test } from "node:test";
import { BuildRefused } from "./failures.ts";
import { testTree } from "../../test/support/source-tree.ts";
import { detect } from "./detect.ts";

const kind = (...paths: string[]) =>
  detect(testTree(Object.fromEntries(paths.map((path) => [path, path === "Procfile" ? "web: x" : ""])))).kind;
test("Go comes before Python before Node before static files", () => {
  assert.equal(kind("Cargo.toml", "src/main.rs", "requirements.txt", "package.json"), "rust");
  assert.deepEqual(
    ["pom.xml", "build.gradle.kts"].map((file) => kind(file, "package.json")),
    ["java", "java"],
  );
  assert.equal(kind("go.mod", "requirements.txt", "package.json", "index.html"), "go");
  assert.equal(kind("requirements.txt", "package.json", "index.html"), "python");
  assert.equal(kind("package.json", "index.html"), "node");
  assert.equal(kind("index.html"), "static");
  assert.equal(kind("public/index.html"), "static");
});

test("Ruby and PHP are known by their manifests and entry files", () => {
  assert.deepEqual([kind("Gemfile"), kind("config.ru", "package.json")], ["ruby", "ruby"]);
  assert.deepEqual([kind("composer.json"), kind("public/index.php", "package.json")], ["php", "php"]);
});

test("an extension or a tool in another language changes nothing", () => {
  assert.equal(kind("Cargo.toml", "src/lib.rs", "package.json"), "node");
  assert.equal(kind("Cargo.toml", "src/lib.rs", "pyproject.toml", "requirements.txt"), "python");
  assert.deepEqual([kind("Gemfile", "package.json"), kind("composer.json", "package.json")], ["node", "node"]);
});

test("a Procfile changes commands, not the language", () => {
  assert.equal(kind("Procfile", "package.json"), "node");
  assert.equal(kind("Procfile"), "procfile");
  assert.equal(kind("Procfile", "index.html"), "procfile");
});

test("what was probably meant is named: a Procfile of another spelling, an application in a folder", () => {
  const refusal = (files: Record<string, string>) => {
    try {
      detect(testTree(files));
    } catch (error) {
      if (error instanceof BuildRefused) return error.detail;
    }
    return assert.fail("it was not refused");
  };
  assert.match(refusal({ procfile: "web: x" }).hint ?? "", /git mv procfile Procfile/);
  const nested = refusal({ "README.md": "", "apps/web/package.json": "{}", "apps/api/go.mod": "" });
  assert.match(nested.summary ?? "", /apps\/api\/go\.mod, apps\/web\/package\.json/);
  assert.match(nested.hint ?? "", /berth projects settings --root apps\/api`/);
  assert.deepEqual(refusal({ "README.md": "" }), {});
});

test("commands that are set win over the Procfile's of the same name, and the others stay", () => {
  const tree = testTree({ Procfile: "web: old\nworker: work\nrelease: migrate\n", "package.json": "{}" });
  const { procfile, buildCommand, kind } = detect(tree, { build: "make", start: "new", processes: { clock: "tick" } });
  assert.deepEqual(procfile, { web: "new", release: "migrate", others: { worker: "work", clock: "tick" } });
  assert.deepEqual([buildCommand, kind], ["make", "node"]);
});
