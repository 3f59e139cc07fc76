import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { systemPath } from "../../kit/exec.ts";
import { silentLog } from "../../kit/log.ts";
import { aptInstall, hasPackageLists, installInto } from "./debian-packages.ts";

test("package lists are missing on a machine where apt-get never fetched them", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-lists-"));
  mkdirSync(join(folder, "partial"));
  writeFileSync(join(folder, "lock"), "");
  assert.equal(hasPackageLists(folder), false);
  assert.equal(hasPackageLists(join(folder, "none")), false);
  writeFileSync(join(folder, "mirror_debian_dists_bookworm_main_binary-amd64_Packages.lz4"), "");
  assert.equal(hasPackageLists(folder), true);
  rmSync(folder, { recursive: true });
});

const notRoot = process.getuid?.() === 0 ? false : "only root installs packages";

test(
  "package lists are fetched before anything is installed, where there are none or they are too old",
  { skip: notRoot },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-apt-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const lists = join(folder, "lists");
    const log = join(folder, "calls");
    // Knows a package only after `update`, as apt-get does.
    const aptGet = `#!/bin/sh\necho "$1" >>${log}\ncase $1 in\n  update) mkdir -p ${lists} && echo socat >${lists}/a_Packages ;;\n  *) grep -qs socat ${lists}/a_Packages || { echo "Unable to locate package socat" >&2; exit 100; } ;;\nesac\n`;
    writeFileSync(join(folder, "apt-get"), aptGet, { mode: 0o755 });
    const context = {
      environment: { PATH: `${folder}:${systemPath}` },
      toolchain: folder,
      log: silentLog,
      packageLists: lists,
    };
    const calls = async () => {
      rmSync(log, { force: true });
      assert.equal(await aptInstall(context, ["socat"]), true);
      return readFileSync(log, "utf8").trim().split("\n");
    };
    assert.deepEqual(await calls(), ["update", "install"], "no lists");
    assert.deepEqual(await calls(), ["install"], "lists that name the package");
    writeFileSync(join(lists, "a_Packages"), "");
    assert.deepEqual(await calls(), ["install", "update", "install"], "lists from before the package");
  },
);

test(
  "Debian's own HAProxy neither runs nor starts at boot once its package is installed for Berth",
  { skip: notRoot },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-haproxy-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const calls = join(folder, "calls");
    for (const name of ["apt-get", "systemctl"])
      writeFileSync(join(folder, name), `#!/bin/sh\necho "${name} $*" >>${calls}\n`, { mode: 0o755 });
    const context = { environment: { PATH: `${folder}:${systemPath}` }, toolchain: folder, log: silentLog };
    assert.equal(await aptInstall(context, ["socat"]), true);
    assert.equal(await aptInstall(context, ["haproxy", "socat"]), true);
    const ofServices = readFileSync(calls, "utf8")
      .split("\n")
      .filter((line) => line.startsWith("systemctl"));
    assert.deepEqual(ofServices, ["systemctl disable --now --quiet haproxy.service"]);
  },
);

test("an apt-get that takes long is said to go on every ten seconds", { skip: notRoot }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-slow-apt-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [begun, go] = [join(folder, "begun"), join(folder, "go")];
  const aptGet = `#!/bin/sh\ntouch ${begun}\nuntil [ -e ${go} ]; do sleep 0.05; done\n`;
  writeFileSync(join(folder, "apt-get"), aptGet, { mode: 0o755 });
  const said: string[] = [];
  const log = { ...silentLog, info: (_: unknown, text: string) => void said.push(text) };
  t.mock.timers.enable({ apis: ["setInterval"] });
  const context = { environment: { PATH: `${folder}:${systemPath}` }, toolchain: folder, log, packageLists: folder };
  const installed = aptInstall(context, ["socat"]);
  await eventually(() => existsSync(begun), "apt-get runs");
  const goesOn = "apt-get update is still running";
  t.mock.timers.tick(9_999);
  assert.ok(!said.includes(goesOn));
  t.mock.timers.tick(1);
  assert.equal(said.at(-1), goesOn);
  t.mock.timers.tick(20_000);
  assert.equal(said.filter((text) => text === goesOn).length, 3);
  writeFileSync(go, "");
  assert.equal(await installed, true);
});

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-install-"));
});
after(() => rm(folder, { recursive: true, force: true }));

test("an installation that fails halfway leaves nothing", async () => {
  const broken = installInto(join(folder, "broken"), async (content) => {
    await writeFile(join(content, "half"), "");
    throw new Error("the network is gone");
  });
  await assert.rejects(broken, /the network is gone/);
  assert.deepEqual(await readdir(folder), []);
});

test("of two at once one is installed whole and both succeed", async () => {
  const target = join(folder, "raced");
  const install = (text: string) => installInto(target, (content) => writeFile(join(content, "file"), text));
  await Promise.all([install("one"), install("two")]);
  assert.match(await readFile(join(target, "file"), "utf8"), /^(?:one|two)$/);
  assert.deepEqual(await readdir(folder), ["raced"]);
});
