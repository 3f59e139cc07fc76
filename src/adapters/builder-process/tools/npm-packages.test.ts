import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { testFolder } from "../../../../test/support/test-folder.ts";
import { systemPath } from "../../../kit/exec.ts";
import { fetchPackage, publishedVersions, type NpmPackagesOptions } from "./npm-packages.ts";
import { packageManagerToolchain } from "./toolchain.ts";

// In place of npm: knows two versions of each package, and packs one with a program in `bin/`.
const npm = `const { appendFileSync, mkdirSync, writeFileSync } = require("node:fs");
const [command, name] = process.argv.slice(2);
appendFileSync(process.env.ASKED, command + "\\n");
if (command === "view") console.log('["1.0.0", "1.2.0"]');
if (command === "pack") {
  const [, folder] = /--pack-destination (\\S+)/.exec(process.argv.join(" "));
  mkdirSync(folder + "/package/bin", { recursive: true });
  writeFileSync(folder + "/package/package.json", JSON.stringify({ name: "tool", bin: { tool: "bin/bun" } }));
  writeFileSync(folder + "/package/bin/bun", name);
  require("node:child_process").execFileSync("tar", ["-czf", folder + "/tool.tgz", "-C", folder, "package"]);
}
`;

const root = testFolder("npm-packages");
const asked = join(root, "asked");
const options: NpmPackagesOptions = {
  ...{ folder: join(root, "packages"), nodeBin: process.execPath, npmDir: join(root, "npm") },
  env: { PATH: systemPath, ASKED: asked },
};
const count = async (command: string) => (await readFile(asked, "utf8")).split(command).length - 1;

before(async () => {
  await mkdir(join(options.npmDir, "bin"), { recursive: true });
  await writeFile(join(options.npmDir, "bin/npm-cli.js"), npm);
});

test("the registry is asked once for a package's versions, not for each build", async () => {
  for (let build = 0; build < 3; build += 1)
    assert.deepEqual(await publishedVersions(options, "tool"), ["1.0.0", "1.2.0"]);
  assert.equal(await count("view"), 1);
});

test("a fetched package has the programs that npm itself would link, and is fetched once", async () => {
  for (let build = 0; build < 2; build += 1) {
    const { folder } = await fetchPackage(options, "tool", "1.2.0");
    assert.equal(await readlink(join(folder, "bin/tool")), "../package/bin/bun");
  }
  assert.equal(await count("pack"), 1);
});

test("Bun's program lies where a build finds it", async () => {
  const bun = { name: "bun", version: "1", lockFile: null, notes: [] } as const;
  const { source, version } = await packageManagerToolchain(options, bun, "24.0.0");
  assert.equal(version, "1.2.0");
  assert.ok(existsSync(join(source, "bin/bun")));
});
