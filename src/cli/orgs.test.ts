import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import type { Result } from "../contract/routes.ts";

const at = "2026-01-02T03:04:05.678Z";
const org: Result<"orgs.enable"> = {
  id: "org_1",
  slug: "acme",
  name: "Acme",
  state: "active",
  max_projects: 10,
  projects: 3,
  created_at: at,
  suspended_at: null,
};

test("making an organization prints its owner token alone on stdout", async () => {
  await using platform = await startScriptedPlatform({ "orgs.create": () => ({ ...org, owner_token: goodToken }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stdout } = await user.berth(["orgs", "create", "acme", "--max-projects", "50"]);
  assert.deepEqual([exitCode, stdout], [0, `${goodToken}\n`]);
  assert.deepEqual(platform.seen[0]?.body, { slug: "acme", name: "acme", max_projects: 50 });
});

test("suspending asks first, and needs --yes where nobody can be asked", async () => {
  const suspended = { ...org, state: "suspended", suspended_at: at } as const;
  await using platform = await startScriptedPlatform({
    "orgs.disable": () => suspended,
    "orgs.enable": () => org,
    "orgs.list": () => ({ orgs: [suspended] }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.equal((await user.berth(["orgs", "disable", "acme"])).exitCode, 2);
  assert.equal(platform.seen.length, 0);
  assert.match((await user.berth(["orgs", "disable", "acme", "--yes"])).stdout, /acme is suspended/);
  assert.match((await user.berth(["orgs"])).stdout, /acme +Acme +suspended +3 of 10/);
  assert.match((await user.berth(["orgs", "enable", "acme"])).stdout, /acme is active/);
});
