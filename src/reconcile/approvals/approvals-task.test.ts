import assert from "node:assert/strict";
import { test } from "node:test";
import { decisionPath, quietNotifier } from "../../../test/support/approvals.ts";
import { sharedApi, testApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { rotateVault } from "../../store/rotate-vault.ts";
import { approvalsTask } from "./approvals-task.ts";

let aheadMs = 0;
const api = await sharedApi({
  ports: { notifiers: [quietNotifier] },
  clock: { now: () => new Date(Date.now() + aheadMs) },
});

const org = await testOrganization(api.database.db, "acme");
const agent = (await testToken(api.database.db, org.id, { role: "owner", approval_mode: true })).text;

const ask = (name: string) => api.call("POST", "/v1/api-tokens", { token: agent, body: { name } });
const create = (slug: string) =>
  api.call("POST", "/v1/projects", { token: agent, body: { slug, name: slug }, headers: { "idempotency-key": slug } });
const runTask = () => approvalsTask(platformBeside(api)).run(new AbortController().signal);

test("requests whose time is over become expired, and kept answers are forgotten after a day", async () => {
  await ask("one");
  await create("kept");
  assert.equal((await runTask()).detail, "0 approvals expired, 0 stored responses deleted");
  aheadMs = 25 * 3_600_000;
  assert.equal((await runTask()).detail, "1 approvals expired, 1 stored responses deleted");
  assert.equal((await runTask()).detail, "0 approvals expired, 0 stored responses deleted");
  aheadMs = 0;
  const { rows } = await api.database.pool.query("select distinct status from approval");
  assert.deepEqual(rows, [{ status: "expired" }]);
});

test("messages that wait and kept answers survive a change of the vault's key", async (t) => {
  const rotated = await testApi({ ports: { notifiers: [quietNotifier] } });
  t.after(() => rotated.close());
  const { db, keyFile } = rotated.database;
  const org = await testOrganization(db, "acme");
  const { text: token } = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const asked = await rotated.call("POST", "/v1/api-tokens", { token, body: { name: "x" } });
  const headers = { "idempotency-key": "k" };
  const write = () => rotated.call("POST", "/v1/projects", { token, body: { slug: "p", name: "p" }, headers });
  const first = await write();
  assert.equal((await rotateVault({ db, keyFile })).key, 2);
  await rotateVault({ db, keyFile });
  const again = await write();
  assert.deepEqual([again.headers.get("idempotency-replayed"), again.text], ["true", first.text]);
  assert.match(await decisionPath(rotated, (asked.body["approval"] as { id: string }).id), /^\/decide\/[\w-]{43}$/);
});
