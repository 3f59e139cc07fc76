import assert from "node:assert/strict";
import { test } from "node:test";
import { detect } from "../../../detection/detect.ts";
import type { Step } from "../../../detection/plan.ts";
import { planBuild } from "../../../detection/plan-build.ts";
import { testTree } from "../../../../test/support/source-tree.ts";
import { prepareSource } from "../../../reconcile/builds/prepare-source.ts";
import { stageDurations, stageReached, stages } from "./marks-of.ts";

const machine = {
  python: { interpreter: "/usr/bin/python3", version: "3.11.2", settings: "" },
  versions: { go: "1.24.0", rust: "1.80.0", ruby: "3.3.0", php: "8.4", composer: "2" },
  java: { jdks: [{ version: "21", folder: "", home: null }], tools: { maven: true, gradle: true } },
  home: "/app",
};
const reached = (title: string) => stages[stageReached(`-----> ${title}\n`)];
const stageOf = { install: "Installing", build: "Building" } as const;

const npm = { "package.json": '{"scripts":{"build":"tsc","postinstall":"x"},"devDependencies":{"a":"1"}}' };
const pyproject = { "pyproject.toml": '[project]\nname="x"\ndependencies=["flask"]\n', "main.py": "" };
const sources: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  npm: { ...npm, "package-lock.json": "{}" },
  pnpm: { ...npm, "pnpm-lock.yaml": "" },
  pip: { "requirements.txt": "django", "manage.py": "", "settings.py": "STATIC_ROOT = 1" },
  uv: { ...pyproject, "uv.lock": '[[package]]\nname = "x"\nversion = "1"\nsource = { virtual = "." }\n' },
  poetry: { "pyproject.toml": '[tool.poetry]\nname="x"\n', "poetry.lock": "", "main.py": "" },
  go: { "go.mod": "module x\n", "main.go": "package main\nfunc main() {}\n" },
  rust: { "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\n', "src/main.rs": "" },
  ruby: { Gemfile: 'gem "rails"\ngem "sprockets-rails"\n', "Gemfile.lock": "", "bin/rails": "", "config.ru": "" },
  php: { "composer.json": "{}", "composer.lock": "{}", "index.php": "" },
  java: { "pom.xml": "<project></project>" },
  deno: { "deno.json": '{"tasks":{"build":"x","start":"x"}}', "deno.lock": "{}" },
};

for (const [name, files] of Object.entries(sources))
  test(`each step of a build with ${name} stands at its stage`, () => {
    const tree = testTree(files);
    const plan = planBuild(detect(tree), tree, machine);
    assert.equal(reached(`${plan.name} detected`), "Detected");
    const planned = [...(plan.install?.steps ?? []), ...(plan.install?.again ?? []), ...plan.build, ...plan.prune];
    const steps = planned.flatMap((step): Step[] => [step, ...(step.instead === undefined ? [] : [step.instead.step])]);
    assert.notEqual(steps.length, 0);
    for (const { title, stage } of steps) assert.equal(reached(title), stageOf[stage], title);
  });

test("reading berth.json and the name of a root folder come before detection", async () => {
  const titles: string[] = [];
  const file = Buffer.from('{ "root": "apps/web", "build": "make", "processes": { "worker": "Building: x" } }');
  const repositories = { read: async () => file, files: async () => ["apps/web/package.json"] };
  const log = { step: (title: string) => titles.push(title), detail: () => {} };
  const build = { project_id: "p", commit: "c", root: null };
  await prepareSource({ ports: { repositories } } as never, build as never, log as never);
  assert.equal(titles.length, 2);
  for (const title of titles) assert.equal(reached(title), "Received", title);
});

test("dependencies that are there already stand at the install", () => {
  for (const title of [
    "Using the installed dependencies of an earlier build (node_modules, nothing changed)",
    "Using the dependencies that a build on this machine installed from the same lock file (node_modules)",
  ])
    assert.equal(reached(title), "Installing");
});

test("a stage took as long as until the first line of the next one that has lines", () => {
  const lines = [
    { at: "2026-01-31T09:00:01.000Z", text: "-----> Node.js app detected" },
    { at: "2026-01-31T09:00:03.000Z", text: "-----> Installing with npm ci" },
    { at: "2026-01-31T09:00:15.000Z", text: "-----> Starting 1 replica" },
  ];
  const created_at = "2026-01-31T09:00:00.000Z";
  const none = undefined;
  assert.deepEqual(stageDurations({ created_at }, lines), [1000, 2000, 12_000, none, none, none, none]);
  const untimed = lines.map(({ text }) => ({ at: null, text }));
  assert.deepEqual(stageDurations({ created_at }, untimed), [none, none, none, none, none, none, none]);
});
