import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

test("an unknown command is named, whatever follows it, with the command to type", async () => {
  await using user = await cliUser({ url: "http://127.0.0.1:9", token: goodToken });
  for (const [typed, unknown, hint] of [
    ["cron delete", "cron", "`berth cron remove`"],
    ["cron rm nightly --yes", "cron", "`berth cron remove`"],
    ["cron add nightly", "cron", "`berth cron set`"],
    ["cron impor jobs.txt", "cron", "`berth cron import`"],
    ["env get", "env", "Values are never shown"],
    ["env shop", "env", "`berth env --help` lists the commands"],
    ["tokens delete", "tokens", "`berth tokens revoke`"],
    ["members add ada@example.com", "members", "`berth members invite`"],
    ["projects create shop --json", "projects", "`berth create`"],
    ["projects rm shop --yes", "projects", "`berth projects delete`"],
    ["projects info shop", "projects", "`berth projects show`"],
    ["builds cancel", "builds", "`berth cancel`"],
    ["contexts delete", "contexts", "berth logout --context <name>"],
    ["db --json shell -c select", "db", "berth db psql"],
    ["db backup create", "db", "`berth backups create`"],
    ["db list", "db", "`berth db --help` lists the commands"],
    ["db psq -c select", "db", "`berth db psql`"],
    ["db delete --yes", "db", "`berth db --help` lists the commands"],
    ["db promote x --deployment 3", "db", "`berth backups promote`"],
    ["db branch remove try --yes", "db branch", "`berth db branch delete`"],
    ["db foo --help", "db", "`berth db --help` lists the commands"],
    ["foo --help", "", "`berth --help` lists the commands"],
    ["backup create --name x", "", "`berth backups create`"],
    ["invite ada@example.com", "", "`berth members invite`"],
    ["branch create try", "", "`berth db branch create`"],
    ["previews list", "", "`berth preview list`"],
    ["restore bak_1", "", "`berth backups restore`"],
    ["dump --format plain", "", "`berth db dump`"],
    ["log shop", "", "`berth logs`"],
  ] as const) {
    const { exitCode, stdout, stderr } = await user.berth(typed.split(" "));
    assert.equal(exitCode, 2, typed);
    assert.equal(stdout, "", typed);
    assert.ok(stderr.includes(`\`${`berth ${unknown}`.trim()}\` does not know the command '`), `${typed}: ${stderr}`);
    assert.ok(stderr.includes(hint), `${typed}: ${stderr}`);
  }
});

test("a known command is not refused because of options and words before or after it", async () => {
  await using user = await cliUser();
  for (const typed of ["-p demo db --json show --help", "db branches create --help", "help db", "db help restore"])
    assert.equal((await user.berth(typed.split(" "))).exitCode, 0, typed);
});

test("berth db restore is berth backups restore", async () => {
  const bodies: unknown[] = [];
  await using platform = await startScriptedPlatform({
    "backups.restore": ({ body }) => (
      bodies.push(body),
      { backup_id: null, database: "restored_1", folder: null, shows: "2026-01-31T09:00:00.000Z" }
    ),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  for (const noun of ["db", "backups"]) {
    const restored = await user.berth([noun, "restore", "-p", "demo", "--at", "2026-01-31T09:00:00Z"]);
    assert.match(restored.stdout, /Restored:.*restored_1/, restored.stderr);
    assert.equal((await user.berth([noun, "restore", "-p", "demo", "--before-deployment", "12"])).exitCode, 0);
  }
  const wanted = [{ at: "2026-01-31T09:00:00.000Z" }, { before_deployment: 12 }];
  assert.deepEqual(bodies, [...wanted, ...wanted]);
});
