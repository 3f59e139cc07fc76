import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { newestUnlessOld } from "../../src/daemon/releases/fetch-release.ts";
import { run, runOk, systemPath } from "../../src/kit/exec.ts";
import { packRelease, publicKeyOf, signRelease } from "./pack-release.ts";

const privateKey = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const folder = await mkdtemp(join(tmpdir(), "berth-small-"));
const keyFile = join(folder, "key.pem");
after(() => rm(folder, { recursive: true, force: true }));
before(() => writeFile(keyFile, publicKeyOf(privateKey)));

test("a list that is older than one seen before at its place, or than the running version, is refused", async () => {
  const place = await releases("list", ["98.0.0", "99.0.0"]);
  const seen = join(folder, "upgrade/seen");
  const newest = async (at = place) => (await newestUnlessOld(at, { seen, keyFile }))?.version;
  assert.equal(await newest(), "99.0.0");
  await releases("list", ["98.0.0"]);
  await assert.rejects(newest(), /end with 98\.0\.0, although 99\.0\.0 was there before/);
  assert.equal(await newest(await releases("other", ["98.0.0"])), "98.0.0", "each place has its own list");
  await releases("list", ["98.0.0", "99.0.1"]);
  assert.equal(await newest(), "99.0.1");
  await assert.rejects(newest(await releases("old", ["0.0.1"])), /end with 0\.0\.1, which is older than .* that runs/);
});

test("install.sh writes a version to the disk before its name, and its name before the link", async () => {
  const place = await releases("installed", ["98.0.0"]);
  const prefix = join(folder, "prefix");
  const programs = join(folder, "programs");
  await mkdir(programs);
  // Writes down what a power cut at this moment could leave.
  const script = `#!/bin/sh\nls -A ${prefix}/versions | grep -v '^\\.' | tr '\\n' ' ' >>${folder}/synced\nreadlink ${prefix}/current >>${folder}/synced || echo none >>${folder}/synced\n`;
  await writeFile(join(programs, "sync"), script);
  await chmod(join(programs, "sync"), 0o755);
  const args = [join(place, "install.sh"), "--no-start", "--prefix", prefix];
  const { exitCode, stderr } = await run(
    { file: "/bin/sh", args },
    { env: { PATH: `${programs}:${systemPath}`, HOME: folder } },
  );
  assert.equal(exitCode, 0, stderr);
  assert.deepEqual((await readFile(join(folder, "synced"), "utf8")).trim().split("\n"), [
    "none",
    "98.0.0 none",
    "98.0.0 versions/98.0.0",
  ]);
});

test("an upgrade writes a version's files to the disk before its name, and its name before the link", async (t) => {
  if ((await run({ file: "strace", args: ["-V"] }).catch(() => undefined)) === undefined)
    return t.skip("strace is not installed");
  const place = await releases("upgraded", ["98.0.0"]);
  const prefix = join(folder, "upgraded-prefix");
  await mkdir(join(prefix, "versions"), { recursive: true });
  const modules = resolve(import.meta.dirname, "../../src/daemon/releases");
  const source = `
    const { fetchRelease } = await import("${modules}/fetch-release.ts");
    const { setCurrent } = await import("${modules}/installation.ts");
    const installation = ${JSON.stringify({ prefix, versions: join(prefix, "versions") })};
    const origin = ${JSON.stringify({ standard: place, seen: join(folder, "upgraded-seen"), keyFile })};
    setCurrent(installation, await fetchRelease(installation, "98.0.0", origin));`;
  const trace = join(folder, "trace");
  const calls = ["-f", "-y", "-o", trace, "-e", "trace=rename,renameat,renameat2,fsync,syncfs"];
  await runOk(
    { file: "strace", args: [...calls, process.execPath, "--input-type=module", "--eval", source] },
    { env: { PATH: systemPath, HOME: folder } },
  );
  assert.equal(await readlink(join(prefix, "current")), "versions/98.0.0");
  const seen = (await readFile(trace, "utf8"))
    .split("\n")
    .filter((line) => line.includes(prefix))
    .map((line) => line.replaceAll(prefix, "").replace(/^\d+ +(\w+)\(/, "$1 "));
  const steps = [
    /^syncfs .*tree/,
    /^rename.*tree".*"\/versions\/98/,
    /^fsync .*\/versions>/,
    /^rename.*"\/current"/,
    /^fsync .*<>/,
  ];
  const found = steps.map((step) => seen.findIndex((line) => step.test(line)));
  assert.ok(
    found.every((at) => at >= 0),
    `${String(found)}\n${seen.join("\n")}`,
  );
  assert.deepEqual(
    found,
    found.toSorted((one, other) => one - other),
    seen.join("\n"),
  );
});

/** Makes a signed folder of releases without content, in place of the one of this name. */
async function releases(name: string, versions: readonly string[]): Promise<string> {
  const [to, stage] = [join(folder, name), join(folder, "stage")];
  await rm(to, { recursive: true, force: true });
  await mkdir(to);
  const archives = [];
  for (const version of versions) {
    await mkdir(join(stage, ".toolchain/bin"), { recursive: true });
    await mkdir(join(stage, "bin"));
    await symlink("/bin/true", join(stage, ".toolchain/bin/node"));
    await writeFile(join(stage, "release.json"), JSON.stringify({ version, commit: null }));
    archives.push(await packRelease(stage, to, { version, timeMs: 0, arch: process.arch }));
    await rm(stage, { recursive: true });
  }
  await signRelease(to, archives, privateKey);
  return to;
}
