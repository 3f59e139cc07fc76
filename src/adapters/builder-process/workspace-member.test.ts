// Drawn with other builder files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { attempt, imageOf, type SourceFiles } from "../../ports/builder.suite.ts";
import type { Image } from "../../ports/builder.ts";
import { makeTestBuilder, visit, withoutRegistry, type TestBuilder } from "../../../test/support/process-builder.ts";

let test: TestBuilder;
before(async () => {
  test = await makeTestBuilder();
});
after(() => test.close());

const isNumber = "sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng==";
const ms = "sha512-6FlzubTLZG3J2a/NVCAleEhjzq5oxgHyaCU9yYXvcLsvoVaHJq/s5xXI6/XXP6tz7R9xAOtHnSO/tXtF3WRTlA==";
const pnpm = `lockfileVersion: '9.0'
importers:
  .: {}
  apps/other:
    dependencies:
      missing-package-of-the-other-app: {specifier: 1.0.0, version: 1.0.0}
  apps/web:
    dependencies:
      '@x/greet': {specifier: 'workspace:*', version: link:../../packages/greet}
    devDependencies:
      is-number: {specifier: 7.0.0, version: 7.0.0}
  packages/greet:
    dependencies:
      ms: {specifier: 2.1.3, version: 2.1.3}
packages:
  is-number@7.0.0: {resolution: {integrity: ${isNumber}}}
  missing-package-of-the-other-app@1.0.0: {resolution: {integrity: ${ms}}}
  ms@2.1.3: {resolution: {integrity: ${ms}}}
snapshots:
  is-number@7.0.0: {}
  missing-package-of-the-other-app@1.0.0: {}
  ms@2.1.3: {}
`;
const packages = {
  "apps/web": {
    ...{ name: "@x/web", version: "1.0.0", devDependencies: { "is-number": "7.0.0" } },
    scripts: { build: `node -e "require('is-number');fs.writeFileSync('built.txt','built')"`, start: "node app.js" },
  },
  "packages/greet": {
    ...{ name: "@x/greet", version: "1.0.0", main: "made.js", dependencies: { ms: "2.1.3" } },
    scripts: { build: `node -e "fs.writeFileSync('made.js','module.exports=require(\\'ms\\')(60000)')"` },
  },
};

/** The workspace of an application that needs another package of it, which a build makes unless it is in the source. */
function workspace(spec: string, more: SourceFiles): SourceFiles {
  const web = { ...packages["apps/web"], dependencies: { "@x/greet": spec } };
  return {
    "apps/web/package.json": JSON.stringify(web),
    "apps/web/app.js": `const text = require("fs").readFileSync("built.txt") + " " + require("@x/greet");
require("http").createServer((_, reply) => reply.end(text)).listen(process.env.PORT);`,
    "packages/greet/package.json": JSON.stringify(packages["packages/greet"]),
    ...more,
  };
}

const contentOf = (image: Image) => join(test.options.releasesDir, "prj_suite", image.image_ref.slice(7), "app");

async function built(files: SourceFiles): Promise<Image> {
  const { outcome, lines } = await attempt(test.builder, files, { commands: { member: "apps/web" } });
  assert.equal(outcome.outcome, "built", lines.join("\n"));
  return imageOf(outcome);
}

describe("an application in a folder of a workspace", { skip: withoutRegistry }, () => {
  it("is installed from the lock file around it, with the packages it needs and no others: pnpm", async () => {
    const image = await built(
      workspace("workspace:*", {
        "package.json": JSON.stringify({ name: "around", private: true }),
        "pnpm-workspace.yaml": "packages:\n  - apps/*\n  - packages/*\n",
        "pnpm-lock.yaml": pnpm,
        "apps/other/package.json": JSON.stringify({
          ...{ name: "@x/other", version: "1.0.0", scripts: { build: "exit 1" } },
          dependencies: { "missing-package-of-the-other-app": "1.0.0" },
        }),
      }),
    );
    assert.equal(image.web_command, "cd apps/web && node app.js");
    assert.deepEqual(await visit(test, image), { status: 200, text: "built 1m" });
    assert.equal(existsSync(join(contentOf(image), "apps/web/node_modules/is-number/package.json")), false);
  });

  it("is installed from the lock file around it: npm", async () => {
    const locked = (integrity: string, version: string, more = {}) => ({ version, integrity, ...more });
    const lock = {
      ...{ name: "around", lockfileVersion: 3, requires: true },
      packages: {
        "": { name: "around", workspaces: ["apps/*", "packages/*"] },
        "apps/web": { ...packages["apps/web"], scripts: undefined, dependencies: { "@x/greet": "*" } },
        "packages/greet": { ...packages["packages/greet"], scripts: undefined },
        "node_modules/@x/greet": { resolved: "packages/greet", link: true },
        "node_modules/@x/web": { resolved: "apps/web", link: true },
        "node_modules/is-number": locked(isNumber, "7.0.0", { dev: true }),
        "node_modules/ms": locked(ms, "2.1.3"),
      },
    };
    const image = await built(
      workspace("*", {
        "package.json": JSON.stringify({ name: "around", private: true, workspaces: ["apps/*", "packages/*"] }),
        "package-lock.json": JSON.stringify(lock),
        "packages/greet/made.js": `module.exports = require("ms")(60000);`,
      }),
    );
    assert.deepEqual(await visit(test, image), { status: 200, text: "built 1m" });
    assert.equal(existsSync(join(contentOf(image), "node_modules/is-number")), false);
  });
});
