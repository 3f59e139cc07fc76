import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken } from "../../test/support/scripted-platform.ts";

const table = readFileSync(new URL("../../docs/coming-from.md", import.meta.url), "utf8");
const rows = [...table.matchAll(/^\| `\w+ ([^`]+)` \| (.+) \|$/gm)].map(([, typed = "", answer = ""]) => ({
  typed,
  answer,
}));

test("what users of other platforms type on their first day is a command here, or names ours", async () => {
  assert.ok(rows.length >= 40, `${rows.length} rows`);
  await using user = await cliUser({ url: "http://127.0.0.1:9", token: goodToken });
  for (const { typed, answer } of rows) {
    const { stdout, stderr } = await user.berth(typed.split(" "));
    const said = `${stdout}${stderr}`;
    const [, own = ""] = /`(berth \w+)/.exec(answer) ?? [];
    const isOurs = own !== "" && typed.split(/[ :]/)[0] === own.slice("berth ".length);
    assert.ok(!/unknown command/i.test(said) || said.includes("`berth "), `${typed}: ${said}`);
    if (!isOurs)
      assert.ok(said.includes(own === "" ? answer.slice(0, 30) : own), `${typed} does not name ${answer}: ${said}`);
  }
});
