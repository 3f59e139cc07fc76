import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { run, runOk } from "../../src/kit/exec.ts";
import { importRules } from "./import-rules.ts";
import { trackedFiles } from "./tracked-files.ts";

const root = resolve(import.meta.dirname, "../..");

/** For every rule files whose last one breaches it; the others are what the breach needs. */
const breaches: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "kit-knows-nothing-of-ours": { "src/kit/planted-kit.ts": 'import "../ports/planted-port.ts";' },
  "sandbox-knows-no-domain": { "src/sandbox/planted-sandbox.ts": 'import "../ports/planted-port.ts";' },
  "contract-loads-in-a-browser": { "src/contract/planted-contract.ts": 'import "node:fs";' },
  "ports-say-what-not-how": { "src/ports/planted-port.ts": 'import type {} from "../store/planted-leaf.ts";' },
  "ports-import-types-only": { "src/ports/planted-value.ts": 'import "../kit/planted-leaf.ts";' },
  "detection-decides-without-a-disk": { "src/detection/planted-look.ts": 'import "node:fs";' },
  "building-serves-builders": { "src/building/planted-build.ts": 'import "../store/planted-leaf.ts";' },
  "postgres-serves-postgres-hosts": { "src/postgres/planted-work.ts": 'import "../store/planted-leaf.ts";' },
  "containers-serve-runtimes": { "src/containers/planted-parts.ts": 'import "../store/planted-leaf.ts";' },
  "store-knows-no-features": { "src/store/planted-store.ts": 'import "../features/planted/planted.ts";' },
  "features-know-no-outside": { "src/features/planted/outside.ts": 'import "../../http/planted-leaf.ts";' },
  "features-use-front-doors": { "src/features/planted/side-door.ts": 'import "../other/rules.ts";' },
  "reconcile-uses-front-doors": { "src/reconcile/planted-reconcile.ts": 'import "../features/other/rules.ts";' },
  "git-knows-ports-only": { "src/git/planted-git.ts": 'import "../features/other/other.ts";' },
  "http-knows-rows-not-nouns": { "src/http/planted-http.ts": 'import "../features/other/rules.ts";' },
  "handlers-are-for-http": { "src/reconcile/planted-handlers.ts": 'import "../features/other/handlers.ts";' },
  "adapters-implement-ports-only": {
    "src/adapters/runtime-planted/feature.ts": 'import "../../features/other/other.ts";',
  },
  "adapters-know-their-own-port": {
    "src/adapters/runtime-planted/foreign-port.ts": 'import "../../ports/planted-leaf.ts";',
  },
  "adapters-stand-alone": { "src/adapters/runtime-planted/neighbour.ts": 'import "../edge-planted/leaf.ts";' },
  "adapters-bring-their-own-package": { "src/adapters/runtime-planted/framework.ts": 'import "zod";' },
  "nobody-imports-the-daemon": { "src/kit/planted-wire.ts": 'import "../daemon/planted-leaf.ts";' },
  "client-helps-clients": { "src/client/planted-client.ts": 'import "../store/planted-leaf.ts";' },
  "mcp-is-a-client": { "src/mcp/planted-tool.ts": 'import "../store/planted-leaf.ts";' },
  "cli-is-a-client": { "src/cli/planted-cli.ts": 'import "../store/planted-leaf.ts";' },
  "dashboard-is-a-client": { "src/dashboard/planted-page.ts": 'import "../kit/planted-leaf.ts";' },
  "bundler-is-a-program": { "src/bundler/planted-use.ts": 'import "../kit/planted-leaf.ts";' },
  "one-file-starts-processes": { "src/git/planted-process.ts": 'import "node:child_process";' },
  "source-needs-no-tools": { "src/kit/planted-tool.ts": 'import "../../tools/planted-leaf.ts";' },
  "tests-are-imported-by-tests": { "src/kit/planted-tested.ts": 'import "./planted-leaf.test.ts";' },
  "no-development-packages-at-run-time": { "src/kit/planted-development.ts": 'import "smtp-server";' },
  "packages-are-declared": { "src/kit/planted-stranger.ts": 'import "planted-package";' },
  "imports-resolve": { "src/kit/planted-nothing.ts": 'import "./planted-missing.ts";' },
  "no-circles": {
    "src/kit/planted-circle.ts": 'import "./planted-circle-back.ts";\nexport type Planted = string;',
    "src/kit/planted-circle-back.ts": 'import type { Planted } from "./planted-circle.ts";',
  },
};

const leaves = [
  "src/store/planted-leaf.ts",
  "src/kit/planted-leaf.ts",
  "src/kit/planted-leaf.test.ts",
  "src/http/planted-leaf.ts",
  "src/daemon/planted-leaf.ts",
  "src/ports/planted-leaf.ts",
  "src/features/planted/planted.ts",
  "src/features/other/other.ts",
  "src/features/other/rules.ts",
  "src/features/other/handlers.ts",
  "src/adapters/edge-planted/leaf.ts",
  "tools/planted-leaf.ts",
  "node_modules/planted-package/index.js",
];

/** What is allowed, in the same shapes: the rules must not forbid it. */
const allowed: Readonly<Record<string, string>> = {
  "src/kit/allowed.ts": 'import "node:fs";',
  "src/sandbox/allowed.ts": 'import "node:fs"; import "../kit/planted-leaf.ts";',
  "src/adapters/runtime-planted/sandboxed.ts": 'import "../../sandbox/allowed.ts";',
  "src/postgres/allowed.ts":
    'import "pg"; import "../sandbox/allowed.ts"; import type {} from "../ports/planted-leaf.ts";',
  "src/containers/allowed.ts": 'import "../sandbox/allowed.ts"; import type {} from "../ports/planted-leaf.ts";',
  "src/adapters/runtime-planted/with-roles.ts":
    'import "../../postgres/allowed.ts"; import "../../containers/allowed.ts";',
  "src/detection/allowed.ts": 'import type {} from "../ports/failure.ts"; import "semver"; import "node:crypto";',
  "src/ports/allowed.ts": 'import type {} from "../kit/planted-leaf.ts"; import type {} from "node:stream";',
  "src/features/planted/allowed.ts":
    'import "../other/other.ts"; import "./planted.ts"; import "../../store/planted-leaf.ts";',
  "src/reconcile/allowed.ts": 'import "../features/other/other.ts";',
  "src/http/allowed.ts": 'import "../features/other/handlers.ts"; import "fastify";',
  "src/adapters/runtime-planted/allowed.ts": 'import "../../ports/runtime.ts"; import "../../kit/planted-leaf.ts";',
  "src/daemon/allowed.ts": 'import "../adapters/edge-planted/leaf.ts"; import "pino";',
};

let copy = "";
let output = "";

before(async () => {
  copy = await mkdtemp(join(tmpdir(), "berth-imports-"));
  await copySources();
  const files = Object.assign({}, ...Object.values(breaches), allowed) as Record<string, string>;
  for (const file of leaves) await plant(file, "export {};");
  for (const [file, text] of Object.entries(files)) await plant(file, text);
  output = (await run({ file: process.execPath, args: ["tools/check/imports.ts"] }, { cwd: copy })).stdout;
});

after(() => rm(copy, { recursive: true, force: true }));

test("every rule has a planted breach", () => {
  assert.deepEqual(Object.keys(breaches).toSorted(), importRules.map((rule) => rule.name).toSorted());
});

for (const [rule, files] of Object.entries(breaches)) {
  test(`a breach of ${rule} is found`, () => {
    const file = Object.keys(files).at(-1) ?? "";
    const found = output.split("\n").filter((line) => line.startsWith(`${file} -> `) && line.includes(`: ${rule} `));
    assert.equal(found.length, 1, `no breach of ${rule} reported for ${file} in:\n${output}`);
  });
}

test("what the rules allow is not reported", () => {
  const wrong = output.split("\n").filter((line) => line.includes("/allowed.ts ->"));
  assert.deepEqual(wrong, []);
});

async function copySources(): Promise<void> {
  for (const file of await tracked()) {
    await mkdir(dirname(join(copy, file)), { recursive: true });
    await cp(join(root, file), join(copy, file));
  }
  await mkdir(join(copy, "node_modules"));
  for (const name of [
    "dependency-cruiser",
    "typescript6",
    "zod",
    "fastify",
    "pino",
    "smtp-server",
    "kysely",
    "pg",
    "ssh2",
    "semver",
  ]) {
    await symlink(join(root, "node_modules", name), join(copy, "node_modules", name));
  }
  await runOk({ file: "git", args: ["init", "-q"] }, { cwd: copy });
}

async function tracked(): Promise<readonly string[]> {
  const files = await trackedFiles(["src", "tools/check", "package.json", "tsconfig.json", ".gitignore"], root);
  return files.filter((file) => !file.endsWith("imports.test.ts"));
}

async function plant(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(copy, file)), { recursive: true });
  await writeFile(join(copy, file), `${text}\n`);
}
