import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { guardMs } from "../../../test/support/eventually.ts";
import { run, runOk, systemPath } from "../../kit/exec.ts";
import { unitNames } from "../../kit/tenant-group.ts";
import { parseSettings, restartRule, settingsText, unitTexts, unitsOf, type UnitPlan } from "./run-unit-command.ts";

const plan: UnitPlan = {
  scope: "system",
  starter: "/opt/100% berth/bin/berthd",
  environmentFile: "/etc/berth/berth.env",
  dataDir: "/srv/50% berth",
  searchPath: "/usr/local/bin:/usr/bin:/bin",
  home: "/root",
};
const linesOf = (scope: UnitPlan["scope"], name: string) => (unitTexts({ ...plan, scope })[name] ?? "").split("\n");

test("the control plane's unit ends the control plane alone, and has no mount namespace", () => {
  const lines = linesOf("system", unitNames.controlPlane);
  for (const line of [
    `After=${unitNames.tenants} network-online.target`,
    'ExecStart="/opt/100%% berth/bin/berthd" start',
    "EnvironmentFile=-/etc/berth/berth.env",
    "KillMode=process",
    "Slice=berth.slice",
    "NoNewPrivileges=yes",
    "WantedBy=multi-user.target",
  ])
    assert.ok(lines.includes(line), line);
  // Each of these options would hide the networks that an earlier start mounted.
  const withNamespace =
    /^(?:Protect(?:System|Home|Kernel\w+|ControlGroups|Hostname|Proc)|Private\w+|(?:ReadOnly|ReadWrite|Inaccessible)Paths)=/;
  assert.deepEqual(
    lines.filter((line) => withNamespace.test(line)),
    [],
  );
  assert.ok(lines.some((line) => line.startsWith("Environment=") && line.endsWith("BERTH_ON_STOP=keep")));
});

test("what outlives the control plane has a delegated group in a unit of its own, which no killed application ends", () => {
  for (const scope of ["system", "user"] as const) {
    const lines = linesOf(scope, unitNames.tenants);
    for (const line of ["Delegate=yes", "OOMPolicy=continue", "TasksMax=infinity"])
      assert.ok(lines.includes(line), line);
    assert.ok(!lines.some((line) => line.startsWith("KillMode=")), "a stop of this unit ends everything in it");
  }
});

test("after a stop of everything, empty folders of sockets are gone and one in use stays", async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), "berth $units %-"));
  t.after(() => rm(dataDir, { recursive: true, force: true }));
  await mkdir(join(dataDir, "databases"));
  const [empty, used] = [join(dataDir, "run 1"), join(dataDir, "run 2")];
  for (const [folder, note] of [
    [empty, "run-folder"],
    [used, "databases/run-folder"],
  ] as const) {
    await mkdir(join(folder, "sockets"), { recursive: true });
    await writeFile(join(dataDir, note), folder);
  }
  await writeFile(join(used, "sockets", "one"), "");
  const line = (unitTexts({ ...plan, dataDir })[unitNames.tenants] ?? "").match(
    /^ExecStopPost=-\/bin\/sh -c (.+)$/m,
  )?.[1];
  // Splits the line like systemd: doubled dollars and percents become single ones.
  const words = [...(line ?? "").matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = ""]) =>
    word
      .replaceAll(/\\(.)/g, "$1")
      .replaceAll("$$", () => "$")
      .replaceAll("%%", "%"),
  );
  await runOk({ file: "/bin/sh", args: ["-c", ...words] });
  assert.deepEqual((await readdir(dataDir)).toSorted(), ["databases", "run 2", "run-folder"]);
});

test("systemd finds nothing to expand in what the units run, whatever the folders are called", () => {
  const texts = Object.values(unitTexts({ ...plan, dataDir: "/srv/$HOME" })).join("\n");
  assert.deepEqual(texts.match(/(?<!\$)(?:\$\$)*\$(?!\$).{0,20}|(?<!%)(?:%%)*%(?!%).{0,20}/g) ?? [], []);
});

test("a user's units ask for nothing that only the machine's systemd may give", () => {
  const lines = [unitNames.controlPlane, unitNames.tenants].flatMap((name) => linesOf("user", name));
  assert.deepEqual(
    lines.filter((line) => /^(?:Slice|CapabilityBoundingSet|SystemCallFilter)=|network-online/.test(line)),
    [],
  );
  assert.ok(lines.includes("WantedBy=default.target"));
});

for (const scope of ["system", "user"] as const) {
  test(`systemd-analyze finds nothing wrong with the units of the ${scope}`, async (t) => {
    const found = await run({ file: "systemd-analyze", args: ["--version"] }).catch(() => undefined);
    if (found?.exitCode !== 0) return t.skip("systemd-analyze is not installed (apt-get install systemd)");
    const folder = await mkdtemp(join(tmpdir(), "berth-units-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const texts = unitTexts({ ...plan, scope, starter: "/bin/true" });
    for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), text);
    const files = Object.keys(texts).map((name) => join(folder, name));
    const args = ["verify", ...(scope === "user" ? ["--user"] : []), "--man=no", ...files];
    const env = { PATH: systemPath, XDG_RUNTIME_DIR: folder };
    const { exitCode, stderr } = await run({ file: "systemd-analyze", args }, { env, timeoutMs: guardMs });
    const ours = stderr.split("\n").filter((line) => line.includes("berth"));
    assert.deepEqual([exitCode, ours], [0, []], stderr);
  });
}

test("the settings of a second install become the service's, and what an operator wrote beside them stays", () => {
  const first = settingsText(null, { BERTH_HTTP_PORT: "4100", PATH: "/bin" }, { LANG: "C", BERTH_DATA: "/srv/berth" });
  assert.equal(first, 'LANG="C"\nBERTH_DATA="/srv/berth"\nBERTH_HTTP_PORT="4100"\n');
  const edited = `# mine\n${first}BERTH_DOMAIN=example.org\n`;
  const second = settingsText(edited, { BERTH_HTTP_PORT: "4200", BERTH_HOST: 'a"b' }, { BERTH_DATA: "/elsewhere" });
  assert.deepEqual(second.trimEnd().split("\n"), [
    "# mine",
    'LANG="C"',
    'BERTH_DATA="/srv/berth"',
    "BERTH_DOMAIN=example.org",
    'BERTH_HTTP_PORT="4200"',
    'BERTH_HOST="a\\"b"',
  ]);
});

test("the settings of the units are read as they were written, and as an operator edits them", () => {
  const given = { BERTH_DOMAIN: "example.org", BERTH_MAIL_FROM: 'Berth "ops" \\ $1 `x` <a@example.org>' };
  assert.deepEqual(parseSettings(settingsText(null, given, {})), given);
  assert.deepEqual(parseSettings("# a comment\n BERTH_HOST=plain\nPATH=/bin\n"), { BERTH_HOST: "plain" });
});

test("a removal knows every folder that an installation may have made, inner ones first", () => {
  assert.deepEqual(unitsOf({ isRoot: true }).folders, ["/etc/berth", "/etc/needrestart/conf.d", "/etc/needrestart"]);
});

test("needrestart leaves both units alone, and no other", async () => {
  const asks = `our %nrconf; ${restartRule}
    for my $unit (@ARGV) { print join(",", map { $unit =~ /$_/ ? $nrconf{override_rc}{$_} : () } keys %{$nrconf{override_rc}}), ";" }`;
  const units = [...Object.values(unitNames), "nginx.service"];
  assert.equal((await runOk({ file: "/usr/bin/perl", args: ["-e", asks, ...units] })).stdout, "0;0;;");
});
