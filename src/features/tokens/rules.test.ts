import assert from "node:assert/strict";
import { test } from "node:test";
import { rightsWithin } from "./rules.ts";

test("a token in approval mode creates no token without it, whatever the request says", () => {
  const agent = { role: "owner", scopes: [], project_ids: null, platform_admin: false, approval_mode: true } as const;
  for (const approval_mode of [undefined, false, true])
    assert.deepEqual(rightsWithin(agent, { role: "member", approval_mode }), {
      role: "member",
      scopes: [],
      approval_mode: true,
    });
});
