import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken } from "../../test/support/scripted-platform.ts";
import { verbMeant } from "./command-tree.ts";

test("a word for the same act wins over one that is spelled alike", () => {
  const cron = ["list", "set", "run", "runs", "remove"];
  assert.deepEqual(
    ["rm", "delete", "add", "runz"].map((word) => verbMeant(word, cron)),
    ["remove", "remove", "set", "run"],
  );
  assert.equal(verbMeant("delete", ["show", "dump", "drop"]), undefined);
});

test("an unknown command of a group names the one to type", async () => {
  await using user = await cliUser({ url: "http://127.0.0.1:9", token: goodToken });
  for (const [typed, expected] of [
    ["cron delete", "berth cron remove"],
    ["env get", "Values are never shown"],
    ["tokens delete", "berth tokens revoke"],
    ["projects create", "berth create"],
    ["builds cancel", "berth cancel"],
    ["contexts delete", "berth logout --context <name>"],
  ] as const) {
    const { exitCode, stderr } = await user.berth(typed.split(" "));
    assert.equal(exitCode, 2);
    assert.ok(stderr.includes(expected), `${typed}: ${stderr}`);
  }
});
