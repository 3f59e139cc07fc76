import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import {
  testApi,
  testOrganization,
  testToken,
  type TestApi,
  type TestOrganization,
} from "../../test/support/test-platform.ts";
import { eventually } from "../../test/support/eventually.ts";
import { createCallerCount } from "./open-count.ts";

let api: TestApi;
let crowd: TestOrganization;
let neighbour: TestOrganization;
before(async () => {
  api = await testApi({ http: { limits: { streamsPerOrganization: 3 } } });
  crowd = await testOrganization(api.database.db, "crowd");
  neighbour = await testOrganization(api.database.db, "neighbour");
});
after(() => api.close());

async function openStream(token: string) {
  const headers = { authorization: `Bearer ${token}` };
  const request = get(`${api.baseUrl}/v1/activity/changes?follow=true`, { headers, agent: false });
  const [{ statusCode }] = (await once(request, "response")) as [IncomingMessage];
  return { statusCode, leave: () => request.destroy() };
}

test("an organization opens only so many streams with all its tokens, and others are not affected", async () => {
  const streams = [];
  for (let n = 0; n < 4; n += 1) {
    const { text } = await testToken(api.database.db, crowd.id, { role: "owner" });
    streams.push(await openStream(text));
  }
  streams.push(await openStream(neighbour.owner));
  assert.deepEqual(
    streams.map(({ statusCode }) => statusCode),
    [200, 200, 200, 429, 200],
  );
  streams[0]?.leave();
  await eventually(async () => {
    const again = await openStream(crowd.owner);
    again.leave();
    return again.statusCode === 200;
  }, "a closed stream makes room for another");
  for (const { leave } of streams) leave();
});

test("a refusal counts neither for the token nor for the organization", () => {
  const count = createCallerCount(2, 2, "streams");
  const [one, two] = [
    { token_id: "tok_1", org_id: "org_1" },
    { token_id: "tok_2", org_id: "org_1" },
  ];
  const close = count.open(one);
  const closeOther = count.open(one);
  for (let n = 0; n < 3; n += 1) assert.throws(() => count.open(two), /This organization has 2 streams open/);
  close();
  closeOther();
  count.open(two);
  count.open(two);
});
