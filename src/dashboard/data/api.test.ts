import assert from "node:assert/strict";
import { test } from "node:test";
import { sampleMe } from "../../../test/support/contract-samples.ts";
import { whyNot, type Me } from "./api.ts";

test("what a token may not do is off with a reason that names who can", () => {
  const me = sampleMe() as Me;
  const why = (more: Partial<Me>, row: Parameters<typeof whyNot>[1]) => whyNot({ ...me, ...more }, row);
  const member = { role: "member", platform_admin: false } as const;
  assert.match(why(member, "platform.overview") ?? "", /platform's operator/);
  assert.match(why(member, "data.insert") ?? "", /owner of the organization/);
  const limited = { role: "owner", platform_admin: false, token: { ...me.token, projects: ["prj_1"] } } as const;
  assert.match(why(limited, "projects.create") ?? "", /limited to projects/);
  const reading = { role: "owner", platform_admin: false, token: { ...me.token, scopes: ["projects:read"] } } as const;
  assert.match(why(reading, "projects.create") ?? "", /lacks the scope projects:\w+/);
  assert.equal(why({ role: "owner" }, "projects.list"), undefined);
});
