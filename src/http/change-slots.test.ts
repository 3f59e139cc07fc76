import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { testProject } from "../../test/support/fixtures.ts";
import {
  testApi,
  testOrganization,
  testToken,
  type TestApi,
  type TestOrganization,
} from "../../test/support/test-platform.ts";
import { openDatabase } from "../store/database.ts";
import { silentLog } from "../kit/log.ts";

let api: TestApi;
let hostile: TestOrganization;
let neighbour: TestOrganization;
before(async () => {
  api = await testApi({ http: { limits: { changes: { all: 7, perOwner: 3, waitingPerOwner: 20, waitMs: 2000 } } } });
  hostile = await testOrganization(api.database.db, "hostile");
  neighbour = await testOrganization(api.database.db, "neighbour");
  for (const org of [hostile, neighbour]) await testProject(api.platform, org, "demo");
});
after(() => api.close());

/** Sends a flood of requests and runs the work while another transaction holds the locks for which they wait. */
async function whileLocked<T>(
  org: TestOrganization,
  flood: () => readonly Promise<T>[],
  work: (sent: readonly Promise<T>[]) => Promise<void>,
): Promise<void> {
  const { db, close } = openDatabase({ connection: api.database.connection, log: silentLog });
  const sent = await db.transaction().execute(async (tx) => {
    await tx.selectFrom("organization").select("id").where("id", "=", org.id).forUpdate().execute();
    await tx.selectFrom("project").select("id").where("org_id", "=", org.id).forUpdate().execute();
    const requests = flood();
    await work(requests);
    return requests;
  });
  await Promise.all(sent);
  await close();
}

const setVariable = (token: string, key: string) =>
  api.call("PUT", `/v1/projects/demo/env/${key}`, { token, body: { value: "1" } });

const floods = {
  writes: (token: string, n: number) => setVariable(token, `KEY_${n}`),
  "dry runs": (token: string) =>
    api.call("PUT", "/v1/projects/demo/env/KEY?dry_run=true", { token, body: { value: "1" } }),
  "requests for an approval": (token: string) => api.call("DELETE", "/v1/projects/demo", { token }),
};

for (const [what, send] of Object.entries(floods))
  test(`100 ${what} that wait for a lock leave the neighbours their answers`, async () => {
    const { text: agent } = await testToken(api.database.db, hostile.id, { role: "owner", approval_mode: true });
    const flood = () => Array.from({ length: 100 }, (_, n) => send(agent, n));
    await whileLocked(hostile, flood, async () => {
      const answers = [
        await setVariable(neighbour.owner, "KEY"),
        await api.call("GET", "/v1/projects/demo", { token: neighbour.owner }),
        await api.call("GET", "/v1/projects/demo", { token: hostile.owner }),
      ];
      assert.deepEqual(
        answers.map(({ status }) => status),
        [204, 200, 200],
      );
    });
  });

test("a change that would wait behind too many, or for too long, is refused and may be repeated", async () => {
  const flood = () => Array.from({ length: 22 }, (_, n) => setVariable(hostile.owner, `KEY_${n}`));
  await whileLocked(hostile, flood, async (sent) => {
    // Three have a slot and 19 wait, fewer than are refused at once.
    const refused = await Promise.race(sent);
    assert.deepEqual(
      [refused.status, refused.body["code"], refused.headers.get("retry-after")],
      [429, "rate_limited", "2"],
    );
  });
  assert.equal((await setVariable(hostile.owner, "KEY")).status, 204);
});
