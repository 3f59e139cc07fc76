// Drawn with other operation files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, cp, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";

import { type ExecResult, run, start } from "../../src/kit/exec.ts";

const root = resolve(import.meta.dirname, "../..");
const timeoutMs = 180_000;
const isRoot = process.getuid?.() === 0;

let folder = "";
let oldNode = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-starter-"));
  await chmod(folder, 0o755);
  oldNode = join(folder, "old-node");
  await mkdir(oldNode);
  // Says that it is too old and otherwise works, so that the machine's npm does.
  const script = `#!/bin/sh\n[ "$1" = -p ] && { echo 20; exit 0; }\nexec "${process.execPath}" "$@"\n`;
  await writeFile(join(oldNode, "node"), script, { mode: 0o755 });
});

after(() => rm(folder, { recursive: true, force: true }));

describe("a starter on a machine whose Node.js is too old", () => {
  let checkout = "";

  // One checkout in four steps, because each fetch of Node is 52 MB.
  test("interrupted while it fetches, it leaves nothing", async () => {
    checkout = await makeCheckout("fresh");
    const child = start({ file: join(checkout, "bin/berth"), args: [] }, { cwd: checkout, env: environment() });
    await once(child.stderr, "data");
    child.kill("SIGTERM");
    await once(child, "close");
    assert.deepEqual(await scratchFolders(checkout), []);
  });

  test("then fetches Node and installs; two at once are safe and leave nothing behind", async () => {
    const results = await Promise.all([starts(checkout, ["one"]), starts(checkout, ["two"])]);
    for (const [index, argument] of ["one", "two"].entries()) {
      const result = results[index] as ExecResult;
      assert.equal(result.exitCode, 0, result.stderr);
      assert.match(result.stdout, new RegExp(`^started 24 ${argument}$`, "m"));
    }
    assert.deepEqual(await scratchFolders(checkout), []);
  });

  test("with everything in place it says nothing", async () => {
    const again = await starts(checkout, ["three"]);
    assert.equal(again.stderr, "");
    assert.match(again.stdout, /^started 24 three$/m);
  });

  test("it installs what the product runs with; a tool adds the packages for development, and a start keeps them", async () => {
    const planted = join(checkout, "node_modules/@types/semver");
    assert.equal(await exists(planted), false);
    const used = join(checkout, "node_modules/smol-toml/used");
    await writeFile(used, "");
    const tool = { file: join(checkout, "tools/setup/run"), args: ["src/cli/main.ts", "tool"] };
    const result = await run(tool, { cwd: checkout, env: environment(), timeoutMs });
    assert.match(result.stdout, /^started 24 tool$/m, result.stderr);
    assert.equal(await exists(planted), true);
    assert.equal(await exists(used), true, "the packages of a running platform stay in place");
    const again = await starts(checkout, ["four"]);
    assert.equal(again.stderr, "");
    assert.equal(await exists(planted), true);
  });

  test("started by a link, it keeps the caller's folder", async () => {
    const link = join(folder, "berth-link");
    await symlink(join(checkout, "bin/berth"), link);
    const result = await run({ file: link, args: ["where"] }, { cwd: folder, env: environment(), timeoutMs });
    assert.match(result.stdout, new RegExp(`^in ${folder}$`, "m"), result.stderr);
  });

  test("refuses a download with another checksum and installs nothing", async () => {
    const other = await makeCheckout("checksum");
    const library = join(other, "tools/setup/prepare.sh");
    await run({ file: "sed", args: ["-i", "s/^\\(NODE_[A-Z0-9]*_SHA512\\)=.*/\\1=00/", library] });
    const result = await starts(other, []);
    assert.equal(result.exitCode, 69);
    assert.match(result.stderr, /does not have the expected checksum; nothing was installed/);
    assert.deepEqual(await readdir(join(other, ".toolchain/bin")), []);
  });
});

test("a BERTH_NODE that is too old is refused in one sentence", async () => {
  const checkout = await makeCheckout("named");
  const result = await starts(checkout, [], { BERTH_NODE: join(oldNode, "node") });
  assert.equal(result.exitCode, 69);
  assert.match(result.stderr, /^berth: BERTH_NODE=.* is not a Node\.js >= 24; name another one or unset it\.\n$/);
});

test(
  "a read-only checkout without dependencies is refused in one sentence",
  { skip: !isRoot && "needs root to become somebody else" },
  async () => {
    const checkout = await makeCheckout("read-only");
    const result = await run(
      { file: join(checkout, "bin/berth"), args: [] },
      { cwd: folder, env: { ...environment(), HOME: "/nonexistent" }, uid: 65534, gid: 65534, timeoutMs },
    );
    assert.equal(result.exitCode, 69);
    assert.match(result.stderr, /^berth: \S+ is read-only for \S+ and its dependencies are missing .*\n$/);
  },
);

test("every starter is a valid POSIX script", { skip: !(await exists("/bin/dash")) && "needs dash" }, async () => {
  for (const file of [
    "bin/berth",
    "bin/berthd",
    "tools/setup/run",
    "tools/setup/test",
    "tools/setup/debian",
    "tools/setup/prepare.sh",
  ]) {
    const result = await run({ file: "/bin/dash", args: ["-n", join(root, file)] });
    assert.equal(result.exitCode, 0, `${file}: ${result.stderr}`);
  }
});

/** A checkout with the starters, a program that says what it sees, and two small dependencies, one for development. */
async function makeCheckout(name: string): Promise<string> {
  const checkout = join(folder, name);
  await mkdir(join(checkout, "src/cli"), { recursive: true });
  for (const part of ["bin", "tools/setup", ".npmrc"])
    await cp(join(root, part), join(checkout, part), { recursive: true });
  const program =
    'console.log("started", process.version.slice(1, 3), process.argv[2]);\nconsole.log("in", process.cwd());\n';
  await writeFile(join(checkout, "src/cli/main.ts"), program);
  const { packages } = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as Lock;
  const small = packages["node_modules/smol-toml"];
  const types = packages["node_modules/@types/semver"];
  const dependencies = { "smol-toml": small?.version };
  const devDependencies = { "@types/semver": types?.version };
  const manifest = { name: "planted", version: "1.0.0", type: "module", dependencies, devDependencies };
  const locked = { "": manifest, "node_modules/@types/semver": types, "node_modules/smol-toml": small };
  const lock = { name: "planted", version: "1.0.0", lockfileVersion: 3, packages: locked };
  await writeFile(join(checkout, "package.json"), JSON.stringify(manifest));
  await writeFile(join(checkout, "package-lock.json"), JSON.stringify(lock));
  return checkout;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string }>>;
}

function starts(
  checkout: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<ExecResult> {
  const command = { file: join(checkout, "bin/berth"), args };
  return run(command, { cwd: checkout, env: { ...environment(), ...more }, timeoutMs });
}

function environment(): Record<string, string> {
  const { BERTH_NODE: _, ...inherited } = process.env as Record<string, string>;
  return { ...inherited, PATH: `${oldNode}:/usr/local/bin:/usr/bin:/bin` };
}

async function scratchFolders(checkout: string): Promise<readonly string[]> {
  const names = await readdir(join(checkout, ".toolchain")).catch(() => []);
  return names.filter((name) => name.startsWith("tmp."));
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
