// Drawn with other operation files: it builds two releases, which takes minutes. .ci/run shows it with every change of what it tests.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { chmod, cp, mkdir, mkdtemp, readFile, readlink, readdir, rm, stat, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { run, runOk, start as startProgram, systemPath } from "../../src/kit/exec.ts";
import { readVersion } from "../../src/kit/own-version.ts";
import { inherited } from "../../test/e2e/platform.ts";
import { killProcesses, processesNaming } from "../../test/e2e/processes.ts";
import { eventually } from "../../test/support/eventually.ts";
import { freePort } from "../../test/support/free-port.ts";
import { buildRelease } from "./build-release.ts";
import { publicKeyOf, signRelease } from "./pack-release.ts";

const { arch } = process as { arch: "x64" | "arm64" };
const privateKey = newKey();
const isRoot = process.getuid?.() === 0;

let folder = "";
let release = "";
let archive = "";
let server: Server;
let url = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-release-"));
  await chmod(folder, 0o755);
  release = join(folder, "release");
  [archive = ""] = await buildRelease(release, privateKey, [arch]);
  server = createServer((request, response) => {
    readFile(join(release, basename(request.url ?? ""))).then(
      (bytes) => response.end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
});

test("two builds of a commit are equal, byte for byte", async () => {
  const [again = ""] = await buildRelease(join(folder, "again"), privateKey, [arch]);
  assert.equal(await digest(again), await digest(archive));
  await rm(join(folder, "again"), { recursive: true });
});

test("openssl verifies the signature over the checksums of everything else", async () => {
  await writeFile(join(folder, "key.pem"), publicKeyOf(privateKey));
  const args = ["pkeyutl", "-verify", "-pubin", "-inkey", "../key.pem", "-rawin", "-in", "SHA256SUMS"];
  await runOk({ file: "openssl", args: [...args, "-sigfile", "SHA256SUMS.sig"] }, { cwd: release });
  await runOk({ file: "sha256sum", args: ["--check", "SHA256SUMS"] }, { cwd: release });
  const names = (await readFile(join(release, "SHA256SUMS"), "utf8")).match(/\S+$/gm);
  assert.deepEqual(names?.toSorted(), [basename(archive), "install.sh"]);
});

describe("install.sh", () => {
  for (const user of isRoot ? (["root", "an ordinary user"] as const) : (["an ordinary user"] as const))
    for (const source of ["a URL", "an archive"] as const)
      test(`installs from ${source} as ${user}, and changes nothing the second time`, async () => {
        const prefix = await home(user);
        const options = ["--from", source === "a URL" ? url : archive, "--prefix", join(prefix, "berth")];
        await install(options, { user, prefix });
        const { version } = readVersion();
        assert.equal(await readlink(join(prefix, "berth/current")), `versions/${version}`);
        assert.deepEqual(await readdir(join(prefix, "berth/versions")), [version]);
        const installed = (await stat(join(prefix, "berth/versions", version))).ctimeMs;
        await install(options, { user, prefix });
        assert.equal((await stat(join(prefix, "berth/versions", version))).ctimeMs, installed);
        await rm(prefix, { recursive: true });
      });

  test("needs no zstd where Debian's dpkg-deb is", async (t) => {
    if ((await run({ file: "dpkg-deb", args: ["--version"] }).catch(() => undefined)) === undefined)
      return t.skip("dpkg-deb is not installed");
    const prefix = await home("root");
    const path = await programsWithout(["zstd"], join(prefix, "bin"));
    await install(["--from", archive, "--prefix", join(prefix, "berth")], { prefix, path });
    await rm(prefix, { recursive: true });
  });

  test("an installed release starts without network: its commands fetch and install nothing", async (t) => {
    const prefix = await home("root");
    t.after(() => rm(prefix, { recursive: true }));
    await install(["--from", archive, "--prefix", join(prefix, "berth")], { prefix });
    const current = join(prefix, "berth/current");
    const offline = isRoot
      ? { file: "unshare", args: ["--net"] }
      : { file: "unshare", args: ["--net", "--map-root-user"] };
    for (const name of ["berth", "berthd"]) {
      const args = [...offline.args, join(prefix, "berth/bin", name), "--version"];
      const { stdout, stderr } = await runOk({ file: offline.file, args }, { env: { PATH: systemPath, HOME: prefix } });
      const { version, commit } = readVersion(current);
      assert.deepEqual([stdout, stderr], [`${version} (${commit?.slice(0, 8)})\n`, ""], name);
    }
    for (const development of [
      "node_modules/vite",
      "src/dashboard",
      "src/bundler",
      "test",
      "src/kit/own-version.test.ts",
    ])
      await assert.rejects(stat(join(current, development)), { code: "ENOENT" });
    assert.ok((await readdir(join(current, "dashboard"))).includes("index.html"));
  });

  test("an installed release serves what is pushed, examines its machine, and leaves nothing once it is uninstalled", async (t) => {
    const prefix = await home("root");
    await install(["--from", archive, "--prefix", join(prefix, "berth")], { prefix });
    const [dataDir, berth] = [join(prefix, "data"), (name: string) => join(prefix, "berth/bin", name)];
    const ports = {
      BERTH_HTTP_PORT: await freePort(),
      BERTH_EDGE_PORT: await freePort(),
      BERTH_SSH_PORT: await freePort(),
    };
    const settings = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
    const env = { ...inherited(), ...settings, HOME: prefix, BERTH_DATA: dataDir, BERTH_ON_STOP: "keep" };
    const child = startProgram({ file: berth("berthd"), args: ["start"] }, { env });
    const over = once(child, "close");
    t.after(() => killProcesses(processesNaming(prefix)));
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    await eventually(async () => /The example is live/.test(output) || child.exitCode !== null, "the example is live");
    assert.equal(child.exitCode, null, output);
    const host = { host: "127.0.0.1", port: ports.BERTH_EDGE_PORT, headers: { host: "example.localhost" } };
    assert.equal(((await once(get(host), "response")) as [IncomingMessage])[0].statusCode, 200);
    const examined = await run({ file: berth("berth"), args: ["doctor", "--json"] }, { env, cwd: prefix });
    assert.match(examined.stdout, /Berth .* runs and is ready/, examined.stderr);
    await runOk(
      { file: berth("berth"), args: ["support", "bundle", join(prefix, "bundle.tar.gz")] },
      { env, cwd: prefix },
    );
    const busy = await run({ file: berth("berthd"), args: ["uninstall", "--purge", "--yes"] }, { env, cwd: prefix });
    assert.match(busy.stderr, /Berth runs on .*Stop it/);
    child.kill("SIGTERM");
    await over;
    assert.notEqual(processesNaming(dataDir).length, 0, "applications and databases outlive the control plane");
    const planned = await runOk({ file: berth("berthd"), args: ["uninstall", "--purge"] }, { env, cwd: prefix });
    assert.match(planned.stdout, /Would be removed[^]*\/berth\/versions\n[^]*\/data\n[^]*Would stay/);
    await writeFile(join(prefix, "berth/mine"), "kept");
    await runOk({ file: berth("berthd"), args: ["uninstall", "--purge", "--yes"] }, { env, cwd: prefix });
    assert.deepEqual(await readdir(join(prefix, "berth")), ["mine"]);
    assert.deepEqual(processesNaming(dataDir), []);
    const left = (await readdir(prefix)).filter((name) => !name.startsWith("."));
    assert.deepEqual(left.toSorted(), ["berth", "bundle.tar.gz"]);
    await rm(prefix, { recursive: true });
  });

  describe("refuses by name, and installs nothing:", () => {
    const refusals: readonly (readonly [string, (copy: string) => Promise<readonly string[]>, RegExp])[] = [
      ["a signature by another key", (copy) => sign(copy, newKey()), /signature of SHA256SUMS does not match/],
      ["checksums that were changed after signing", changed("SHA256SUMS"), /signature of SHA256SUMS does not match/],
      ["an archive that was changed", changed(() => basename(archive)), /does not have the checksum/],
      ["an unknown argument", async () => ["--bogus"], /unknown argument --bogus/],
      ["a version that is not there", async () => ["--version", "9.9.9"], /has no release 9\.9\.9/],
      ["a relative prefix", async () => ["--prefix", "here"], /--prefix must be an absolute path, not here/],
    ];
    for (const [what, prepare, message] of refusals)
      test(what, async (t) => {
        const prefix = await home("root");
        const copy = join(prefix, "release");
        t.after(() => rm(prefix, { recursive: true }));
        await cp(release, copy, { recursive: true });
        const more = await prepare(copy);
        const options = ["--from", copy, "--prefix", join(prefix, "berth"), ...more];
        const { exitCode, stderr } = await start(options, { prefix });
        assert.equal(exitCode, 1, stderr);
        assert.match(stderr, message);
        const left = await readdir(join(prefix, "berth/versions")).catch(() => []);
        assert.deepEqual(left, []);
      });

    test("the sources' own install.sh, which has no key", async () => {
      const prefix = await home("root");
      const { stderr } = await start(["--from", release, "--prefix", join(prefix, "berth")], {
        prefix,
        script: resolve(import.meta.dirname, "../../install.sh"),
      });
      assert.match(stderr, /has no key/);
      await rm(prefix, { recursive: true });
    });

    test("another version than the installed one, with the command for it", async () => {
      const prefix = await home("root");
      const options = ["--from", archive, "--prefix", join(prefix, "berth")];
      await install(options, { prefix });
      await rm(join(prefix, "berth/current"));
      await runOk({ file: "ln", args: ["-s", "versions/0.0.1", join(prefix, "berth/current")] });
      const { stderr } = await start(options, { prefix });
      assert.match(stderr, /Berth 0\.0\.1 is installed in .*: berth platform upgrade/);
      await rm(prefix, { recursive: true });
    });
  });
});

interface Call {
  readonly prefix: string;
  readonly user?: "root" | "an ordinary user";
  readonly path?: string;
  readonly script?: string;
}

function start(
  options: readonly string[],
  { prefix, user = "root", path = systemPath, script = join(release, "install.sh") }: Call,
) {
  const ids = isRoot && user !== "root" ? { uid: 65_534, gid: 65_534 } : {};
  const env = { PATH: path, HOME: prefix };
  return run({ file: "/bin/sh", args: [script, "--no-start", ...options] }, { env, ...ids });
}

async function install(options: readonly string[], call: Call): Promise<void> {
  const { exitCode, stderr } = await start(options, call);
  assert.equal(exitCode, 0, stderr);
}

async function home(user: NonNullable<Call["user"]>): Promise<string> {
  const made = await mkdtemp(join(folder, "home-"));
  if (isRoot && user !== "root") await runOk({ file: "chown", args: ["65534:65534", made] });
  return made;
}

function newKey(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

async function digest(file: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
}

/** Signs a copy of the release anew, and keeps the installer of the original. */
async function sign(copy: string, key: string): Promise<readonly string[]> {
  await signRelease(copy, [join(copy, basename(archive))], key);
  return [];
}

function changed(name: string | (() => string)) {
  return async (copy: string): Promise<readonly string[]> => {
    const file = join(copy, typeof name === "string" ? name : name());
    const bytes = await readFile(file);
    bytes[10] = (bytes[10] as number) ^ 1;
    await writeFile(file, bytes);
    return [];
  };
}

/** Returns a PATH with the system's programs except for some. */
async function programsWithout(missing: readonly string[], bin: string): Promise<string> {
  await mkdir(bin);
  const programs = await readdir("/usr/bin");
  const kept = programs.filter((name) => !missing.includes(name)).map((name) => join("/usr/bin", name));
  await runOk({ file: "ln", args: ["-s", "-t", bin, ...kept] });
  return bin;
}
