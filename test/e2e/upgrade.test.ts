// Drawn with other operation files: it starts whole platforms and replaces them, which takes too long for every run.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drawCases, runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { killAfterSteps, killedAfter, startInstalled, type InstalledPlatform } from "./installed.ts";
import { ask, failures, startTraffic } from "./traffic.ts";

const next = "sql/9001-next.sql";
const expands = { [next]: "-- expand\nalter table platform_fact add column more text;\n" };
const third = { ...expands, "sql/9002-third.sql": "-- expand\nalter table platform_fact add column third text;\n" };
const last = "9003-last.sql";
const breaks = `throw new Error("this version is broken");\n`;

interface Noticed {
  readonly newer: string | null;
  readonly installed: readonly { readonly version: string }[];
}

let platform: InstalledPlatform;

before(async () => {
  platform = await startInstalled({
    "0.1.0": {},
    "0.2.0": expands,
    "0.2.5": third,
    "0.3.0": { ...expands, "src/daemon/start.ts": breaks },
    "0.5.0": { ...third, [`sql/${last}`]: "-- contract\nalter table platform_fact drop column more;\n" },
    "0.3.5": {
      "src/daemon/upkeep-settings.ts": (text) => text.replace("BERTH_UPGRADE_WATCH_SECONDS", "BERTH_NEW_NAME"),
    },
    "0.4.0": { [next]: "-- expand\nalter table no_such_table add column more text;\n" },
  });
});
after(() => platform?.close());

test("the newest release at BERTH_RELEASE_URL is named, and nothing else happens", async () => {
  const versions = async () => JSON.parse((await platform.berth("platform", "versions", "--json")).stdout) as Noticed;
  await eventually(async () => (await versions()).newer === "0.5.0", "the platform has looked for releases");
  assert.deepEqual(
    (await versions()).installed.map(({ version }) => version),
    ["0.1.0"],
  );
});

test("a version whose migration fails is found out on the copy: nothing is replaced", async () => {
  const { pid } = platform.controlPlane();
  const { upgrade } = await platform.upgradeTo("0.4.0");
  assert.deepEqual([upgrade.status, upgrade.to], ["failed", "0.4.0"]);
  assert.match(upgrade.reason ?? "", /9001-next\.sql failed.*no_such_table/s);
  assert.equal(platform.controlPlane().pid, pid);
  assert.equal(readlinkSync(join(platform.prefix, "current")), "versions/0.1.0");
});

test("a version that no longer knows a setting of this platform is found out: nothing is replaced", async () => {
  const { pid } = platform.controlPlane();
  const { upgrade } = await platform.upgradeTo("0.3.5");
  assert.equal(upgrade.status, "failed");
  assert.match(upgrade.reason ?? "", /BERTH_UPGRADE_WATCH_SECONDS is not a setting of Berth/);
  assert.equal(platform.controlPlane().pid, pid);
});

test("a version that does not start is replaced by the one before, and no request fails", async () => {
  const traffic = startTraffic(platform.ground.ports.edge, ["shop"], 20);
  const { upgrade, version } = await platform.upgradeTo("0.3.0");
  const answers = await traffic.stop();
  assert.deepEqual([upgrade.status, version], ["went_back", "0.1.0"]);
  assert.match(upgrade.reason ?? "", /0\.3\.0 .*was not ready/);
  assert.deepEqual(
    failures(answers, (body) => body === "shop"),
    [],
  );
});

test("killed after each step, an upgrade goes on by itself; applications keep their processes", async () => {
  const replica = (await ask(platform.ground.ports.edge, "shop", "/replica")).body;
  const traffic = startTraffic(platform.ground.ports.edge, ["shop"], 20);
  // As a process leaves it that is killed while it fetches.
  mkdirSync(join(platform.prefix, "versions/.install.upgrade/tree"), { recursive: true });
  const killing = killAfterSteps(platform, "0.2.0");
  const { upgrade, version, installed } = await platform.upgradeTo("0.2.0");
  const answers = await traffic.stop();
  assert.deepEqual([upgrade.status, version], ["done", "0.2.0"], upgrade.reason ?? "");
  assert.deepEqual((await killing).toSorted(), killedAfter.toSorted());
  assert.deepEqual(
    failures(answers, (body) => body === "shop"),
    [],
  );
  assert.equal((await ask(platform.ground.ports.edge, "shop", "/replica")).body, replica);
  assert.deepEqual(
    readdirSync(join(platform.prefix, "versions")).filter((name) => name.startsWith(".")),
    [],
    "nothing unfinished is left",
  );
  assert.equal(statSync(join(platform.prefix, "versions/0.2.0/bin/berthd")).mode & 0o777, 0o755);
  const current = new Map(installed.map((each) => [each.version, each.current]));
  assert.deepEqual([current.get("0.1.0"), current.get("0.2.0")], [false, true]);
  assert.ok(
    (installed.find((each) => each.version === "0.1.0")?.processes ?? 0) > 0,
    "the replica's shim runs from 0.1.0",
  );
});

test("the version before runs on the schema of the next one", async () => {
  const { upgrade, version } = await platform.upgradeTo("0.1.0");
  assert.deepEqual([upgrade.status, version], ["done", "0.1.0"], upgrade.reason ?? "");
  assert.equal((await ask(platform.ground.ports.edge, "shop", "/")).body, "shop");
});

// Each pair of three releases, forth and back; with `--all`, each upgrade is killed after each of its steps.
const ways = drawCases(
  [
    ["0.2.5", "0.1.0"],
    ["0.2.0", "0.2.5", "0.2.0", "0.1.0"],
  ],
  1,
);
for (const way of ways)
  test(`from 0.1.0 by ${way.join(", ")}, no request fails`, async () => {
    const traffic = startTraffic(platform.ground.ports.edge, ["shop"], 20);
    for (const to of way) {
      const killing = runsAll ? killAfterSteps(platform, to) : undefined;
      const { upgrade, version } = await platform.upgradeTo(to);
      assert.deepEqual([upgrade.status, version], ["done", to], upgrade.reason ?? "");
      if (killing !== undefined) assert.deepEqual((await killing).toSorted(), killedAfter.toSorted());
    }
    const answers = await traffic.stop();
    process.stdout.write(`${answers.length} requests\n`);
    assert.deepEqual(
      failures(answers, (body) => body === "shop"),
      [],
    );
  });

test("finalizing applies what the version before would not survive, and nothing twice", async () => {
  const { upgrade } = await platform.upgradeTo("0.5.0");
  assert.deepEqual([upgrade.status, upgrade.reason], ["done", null]);
  const before = await platform.call<{ unfinalized: string[] }>("GET", "/v1/platform/versions");
  assert.deepEqual(before.body.unfinalized, [last]);
  const { stdout, stderr } = await platform.berth("platform", "finalize", "--yes", "--json");
  assert.deepEqual((JSON.parse(stdout) as { unfinalized: string[] }).unfinalized, [], stderr);
  const { upgrade: back, version } = await platform.upgradeTo("0.2.0");
  assert.deepEqual([back.status, version], ["failed", "0.5.0"], "the version before refuses the schema");
  assert.equal((await ask(platform.ground.ports.edge, "shop", "/")).body, "shop");
});
