import assert from "node:assert/strict";
import { test } from "node:test";
import { detect } from "./detect.ts";
import { BuildRefused } from "./failures.ts";
import { noJava, planBuild } from "./plan-build.ts";
import { testTree } from "../../test/support/source-tree.ts";

const machine = { python: null, versions: { go: "1.24.0", rust: "1.80.0" }, java: noJava, home: "/app" };
const planOf = (files: Record<string, string>) => {
  const tree = testTree(files);
  return planBuild(detect(tree), tree, machine);
};
const refusalOf = (files: Record<string, string>) => {
  try {
    planOf(files);
  } catch (error) {
    if (error instanceof BuildRefused) return error;
  }
  return assert.fail("it was not refused");
};

const main = "package main\nfunc main() {}\n";
const go = { "go.mod": "module example.org/shop\n", "main.go": main };
const outputs = (files: Record<string, string>) =>
  planOf(files).build.map(({ args }) => args.slice(args.indexOf("-o") + 1).join(" "));

test("a machine without a language refuses its applications by the name of what is missing", () => {
  const bare = { ...machine, versions: {} };
  const files = { go, rust: { "Cargo.toml": "" }, ruby: { "config.ru": "" }, php: { "index.php": "" } };
  for (const [language, source] of Object.entries(files)) {
    const tree = testTree(source);
    assert.throws(() => planBuild(detect(tree), tree, bare), { code: `${language}_missing` });
  }
});

test("a Go program gets the name that the Procfile starts", () => {
  assert.deepEqual(outputs(go), ["bin/web ."]);
  assert.deepEqual(outputs({ ...go, Procfile: "web: ./bin/app -p $PORT" }), ["bin/app ."]);
  assert.deepEqual(outputs({ ...go, Procfile: "web: exec ./shop" }), ["shop ."]);
  assert.deepEqual(outputs({ ...go, Procfile: "web: shop" }), ["bin/shop ."]);
  assert.deepEqual(outputs({ ...go, Procfile: "web: sh run.sh", "run.sh": "" }), ["bin/web ."]);
});

test("of several Go programs the one in cmd/web is started, else in cmd/server, cmd/api or that of the module's name", () => {
  const usual = ["web", "server", "api", "shop"];
  for (const index of usual.keys()) {
    const files = ["a", ...usual.slice(index)].map((name) => [`cmd/${name}/main.go`, main]);
    const tree = { "go.mod": "module example.org/shop\n", ...Object.fromEntries(files) };
    assert.deepEqual(outputs(tree), [`bin/web ./cmd/${usual[index]}`]);
  }
});

test("each Procfile command of a Go module gets the main package of its name", () => {
  const several = { "go.mod": "module x\n", "cmd/api/main.go": main, "cmd/migrate/main.go": main };
  const Procfile = "web: bin/api\nrelease: bin/migrate up";
  assert.deepEqual(outputs({ ...several, Procfile }), ["bin/api ./cmd/api", "bin/migrate ./cmd/migrate"]);
});

test("a Procfile command that cannot exist after the build is refused before anything runs", () => {
  const missing = refusalOf({ Procfile: "web: ./serve.sh" });
  assert.equal(missing.code, "procfile_command_missing");
  assert.match(missing.message, /`web` command starts serve\.sh, which is not in the repository/);
  assert.equal(refusalOf({ Procfile: "web: x\nrelease: node migrate.js" }).code, "procfile_command_missing");
  const go = { "go.mod": "module x", "main.go": "package main" };
  assert.equal(refusalOf({ ...go, Procfile: "web: ./run/start.sh" }).code, "procfile_command_missing");
  assert.equal(refusalOf({ "package.json": "{}", Procfile: "web: node dist/main" }).code, "procfile_command_missing");
});

test("a Procfile command may start what is committed, what a build may make, and what an install brings", () => {
  planOf({ Procfile: "web: node server", "server.js": "" });
  planOf({ Procfile: "web: node .", "index.js": "" });
  planOf({ "package.json": '{"scripts":{"build":"tsc"}}', Procfile: "web: node dist/main" });
  planOf({ "package.json": '{"dependencies":{"a":"1"}}', Procfile: "web: node_modules/.bin/a" });
  planOf({ Procfile: "web: bin/run", bin: "a link to a folder" });
});

test("a Dockerfile beside a language is named as unused; alone it is refused", () => {
  assert.match(planOf({ ...go, Dockerfile: "" }).notes.join(), /Dockerfile is not used/);
  assert.equal(refusalOf({ Dockerfile: "" }).code, "dockerfile_not_supported");
});
