import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sql } from "kysely";
import { decideBy, decisionPath, nonceIn, pressButton, quietNotifier } from "../../../test/support/approvals.ts";
import { tenantDatabaseDouble } from "../../../test/support/port-doubles.ts";
import { testThings } from "../../../test/support/fixtures.ts";
import {
  sharedApi,
  testOrganization,
  testToken,
  type Called,
  type TestOrganization,
} from "../../../test/support/test-platform.ts";

let aheadMs = 0;
let deletedRows = 0;
const logged: unknown[][] = [];
const answers: string[] = [];

const deleteRow = async () => {
  deletedRows += 1;
  return { outcome: "done", found: null } as const;
};
const api = await sharedApi({
  ports: { notifiers: [quietNotifier], tenantDatabase: tenantDatabaseDouble({ deleteRow }) },
  clock: { now: () => new Date(Date.now() + aheadMs) },
  http: { log: recordingLog() },
});

function recordingLog() {
  const write = (...said: unknown[]) => void logged.push(said);
  const log = { debug: write, info: write, warn: write, error: write, child: () => log };
  return log;
}

interface Scene {
  readonly org: TestOrganization;
  /** The agent's token: an owner token in approval mode. */
  readonly agent: { readonly id: string; readonly text: string };
  /** Calls as the agent. */
  readonly ask: (method: string, path: string, body?: unknown) => Promise<Called>;
}

let scenes = 0;

/** Creates an organization for each test, so that no test uses up another's limits. */
async function scene(): Promise<Scene> {
  const { db } = api.database;
  const org = await testOrganization(db, `scene-${(scenes += 1)}`);
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const ask = async (method: string, path: string, body?: unknown) => {
    const called = await api.call(method, path, { token: agent.text, ...(body === undefined ? {} : { body }) });
    answers.push(called.text);
    return called;
  };
  return { org, agent, ask };
}

function approvalOf(called: Called): { id: string; status: string; expires_at: string } {
  assert.equal(called.status, 403, called.text);
  assert.equal(called.body["code"], "approval_required");
  return called.body["approval"] as { id: string; status: string; expires_at: string };
}

const statusOf = async (s: Scene, id: string) => (await s.ask("GET", `/v1/approvals/${id}`)).body["status"];

/** Runs a function at a later time of the clock, then turns the clock back. */
async function later<T>(ms: number, run: () => Promise<T>): Promise<T> {
  aheadMs += ms;
  try {
    return await run();
  } finally {
    aheadMs -= ms;
  }
}

const hourMs = 3_600_000;

describe("a request that needs an approval", () => {
  test("changes nothing, names its approval, and tells what to call next", async () => {
    const s = await scene();
    const { project } = await testThings(api.platform, s.org);
    const called = await s.ask("DELETE", `/v1/projects/${project.slug}`);
    const { id, status, expires_at } = approvalOf(called);
    assert.match(id, /^apr_/);
    assert.equal(status, "pending");
    assert.ok(Math.abs(Date.parse(expires_at) - Date.now() - 24 * hourMs) < 60_000);
    assert.deepEqual(called.body["next"], {
      route: "approvals.get",
      method: "GET",
      path: `/v1/approvals/${id}?wait=60`,
    });
    assert.equal(typeof called.body["hint"], "string");
    assert.equal((await s.ask("GET", `/v1/projects/${project.slug}`)).body["state"], "active");
  });

  test("gets the same approval while it waits, and another one for another body", async () => {
    const s = await scene();
    const ask = (name: string) => s.ask("POST", "/v1/api-tokens", { name, role: "member" }).then(approvalOf);
    const [first, same, other] = [await ask("a"), await ask("a"), await ask("b")];
    assert.equal(first.id, same.id);
    assert.notEqual(first.id, other.id);
    // A default written explicitly gives the same request.
    const spelt = await s.ask("POST", "/v1/api-tokens", { name: "a", expires_in_days: 90 });
    assert.equal(approvalOf(spelt).id, first.id);
  });

  test("is another one with another query, which its approval does not let through", async () => {
    const s = await scene();
    const { project } = await testThings(api.platform, s.org);
    const path = `/v1/projects/${project.slug}`;
    const plain = approvalOf(await s.ask("DELETE", path));
    await decideBy(api, plain.id, "approved");
    const other = approvalOf(await s.ask("DELETE", `${path}?x=1`));
    assert.notEqual(other.id, plain.id);
    assert.equal(await statusOf(s, plain.id), "approved");
    assert.equal((await s.ask("DELETE", path)).status, 200);
  });

  test("is another one when another token sends it", async () => {
    const s = await scene();
    const { project } = await testThings(api.platform, s.org);
    const twin = await testToken(api.database.db, s.org.id, { role: "owner", approval_mode: true });
    const mine = approvalOf(await s.ask("DELETE", `/v1/projects/${project.slug}`));
    await decideBy(api, mine.id, "approved");
    const theirs = approvalOf(await api.call("DELETE", `/v1/projects/${project.slug}`, { token: twin.text }));
    assert.notEqual(theirs.id, mine.id);
  });

  test("is told first what its own state forbids, and what does not exist", async () => {
    const s = await scene();
    const { project } = await testThings(api.platform, s.org);
    await api.call("DELETE", `/v1/projects/${project.slug}`, { token: s.org.owner });
    assert.equal((await s.ask("DELETE", `/v1/projects/${project.slug}`)).body["code"], "project_deleted");
    assert.equal((await s.ask("DELETE", "/v1/projects/never-was")).status, 404);
    assert.equal((await s.ask("POST", "/v1/api-tokens", { name: "" })).status, 400);
    assert.equal((await s.ask("GET", "/v1/approvals?status=pending")).text, '{"approvals":[],"next_cursor":null}');
  });

  test("is not needed for what is not gated, or by other tokens", async () => {
    const s = await scene();
    const { project } = await testThings(api.platform, s.org);
    assert.equal((await s.ask("PUT", `/v1/projects/${project.slug}/env/A`, { value: "1" })).status, 204);
    assert.equal((await api.call("DELETE", `/v1/projects/${project.slug}`, { token: s.org.member })).status, 200);
  });
});

describe("an approval", () => {
  test("lets the identical request through once", async () => {
    const s = await scene();
    const send = () => s.ask("POST", "/v1/api-tokens", { name: "ci" });
    const { id } = approvalOf(await send());
    assert.equal((await decideBy(api, id, "approved")).status, 200);
    assert.equal(await statusOf(s, id), "approved");
    const made = await send();
    assert.equal(made.status, 201);
    assert.equal(made.body["approval_mode"], true, "what an agent makes must ask as well");
    assert.equal(await statusOf(s, id), "consumed");
    assert.notEqual(approvalOf(await send()).id, id);
  });

  test("has exactly one effect when 50 identical deletes come at once", async () => {
    const s = await scene();
    const { project, key } = await testThings(api.platform, s.org);
    for (const path of [`/v1/projects/${project.slug}`, `/v1/ssh-keys/${key}`]) {
      const { id } = approvalOf(await s.ask("DELETE", path));
      await decideBy(api, id, "approved");
      const all = await Promise.all(Array.from({ length: 50 }, () => s.ask("DELETE", path)));
      assert.equal(all.filter(({ status }) => status < 300).length, 1, all.map(({ status }) => status).join());
      assert.ok(all.every(({ status }) => status < 500));
    }
    const { rows } = await sql<{ count: number }>`select count(*) from activity
      where org_id = ${s.org.id} and action in ('project.deleted', 'ssh_key.deleted') and detail ? 'approval_id'`.execute(
      api.database.db,
    );
    assert.equal(rows[0]?.count, 2);
  });

  test("has exactly one effect also where the change is made outside our database", async () => {
    const s = await scene();
    const { project } = await testThings(api.platform, s.org);
    const send = () =>
      s.ask("DELETE", `/v1/projects/${project.slug}/data/tables/public/notes/rows`, { key: { id: 1 } });
    const { id } = approvalOf(await send());
    assert.equal(deletedRows, 0);
    await decideBy(api, id, "approved");
    const all = await Promise.all(Array.from({ length: 50 }, send));
    assert.equal(all.filter(({ status }) => status === 204).length, 1);
    assert.equal(deletedRows, 1);
    const { rows } = await sql<{ target: string; detail: object }>`select target, detail from activity
      where org_id = ${s.org.id} and action = 'data.deleted'`.execute(api.database.db);
    assert.deepEqual(rows, [{ target: "public.notes", detail: { columns: ["id"], approval_id: id } }]);
  });

  test("has exactly one effect when 50 identical creations come at once", async () => {
    const s = await scene();
    const send = () => s.ask("POST", "/v1/api-tokens", { name: "one" });
    await decideBy(api, approvalOf(await send()).id, "approved");
    const all = await Promise.all(Array.from({ length: 50 }, send));
    assert.equal(all.filter(({ status }) => status === 201).length, 1);
    const again = new Set(all.filter(({ status }) => status === 403).map((called) => approvalOf(called).id));
    assert.equal(again.size, 1, "the others share one new request");
  });

  test("is bound to the thing itself, not to its name", async () => {
    const s = await scene();
    const [one, two] = [await testThings(api.platform, s.org), await testThings(api.platform, s.org)];
    const { id } = approvalOf(await s.ask("DELETE", `/v1/projects/${one.project.slug}`));
    await decideBy(api, id, "approved");
    const rename = (project: string, slug: string) =>
      api.database.db.updateTable("project").set({ slug }).where("id", "=", project).execute();
    await rename(one.project.id, "elsewhere");
    await rename(two.project.id, one.project.slug);
    assert.notEqual(approvalOf(await s.ask("DELETE", `/v1/projects/${one.project.slug}`)).id, id);
  });

  test("is bound to the very job and hostname, though others come to have their names", async () => {
    const s = await scene();
    const { project, cron, domain } = await testThings(api.platform, s.org);
    const base = `/v1/projects/${project.slug}`;
    const again: [string, string, string, unknown][] = [
      [`${base}/cron/${cron}`, "PUT", `${base}/cron/${cron}`, { schedule: "0 0 * * *", path: "/nightly" }],
      [`${base}/domains/${domain}`, "POST", `${base}/domains`, { hostname: domain }],
    ];
    for (const [path, method, makePath, body] of again) {
      const { id } = approvalOf(await s.ask("DELETE", path));
      await decideBy(api, id, "approved");
      await api.call("DELETE", path, { token: s.org.owner });
      assert.ok((await api.call(method, makePath, { token: s.org.owner, body })).status < 300);
      assert.notEqual(approvalOf(await s.ask("DELETE", path)).id, id);
    }
  });

  test("expires: pending after a day, approved after an hour", async () => {
    const s = await scene();
    const send = (name: string) => s.ask("POST", "/v1/api-tokens", { name });
    const [waiting, granted] = [approvalOf(await send("waiting")), approvalOf(await send("granted"))];
    await decideBy(api, granted.id, "approved");
    await later(hourMs + 1000, async () => {
      assert.equal(await statusOf(s, granted.id), "expired");
      assert.equal(await statusOf(s, waiting.id), "pending");
      assert.notEqual(approvalOf(await send("granted")).id, granted.id);
    });
    const path = await decisionPath(api, waiting.id);
    await later(24 * hourMs + 1000, async () => {
      assert.equal(await statusOf(s, waiting.id), "expired");
      assert.equal((await fetch(`${api.baseUrl}${path}`)).status, 410);
      assert.notEqual(approvalOf(await send("waiting")).id, waiting.id);
    });
  });

  test("is void when its token is revoked, approved or not", async () => {
    const s = await scene();
    const granted = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "granted" }));
    const waiting = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "waiting" }));
    await decideBy(api, granted.id, "approved");
    const path = await decisionPath(api, waiting.id);
    const page = await (await fetch(`${api.baseUrl}${path}`)).text();
    await api.call("DELETE", `/v1/api-tokens/${s.agent.id}`, { token: s.org.owner });
    const { body } = await api.call("GET", "/v1/approvals", { token: s.org.member });
    const statuses = (body["approvals"] as { status: string }[]).map(({ status }) => status);
    assert.deepEqual(statuses, ["expired", "expired"]);
    assert.equal((await pressButton(api, path, { choice: "approved", nonce: nonceIn(page) })).status, 410);
  });

  test("is listed newest first, by status, and by nobody else", async () => {
    const s = await scene();
    const ids = [];
    for (const name of ["a", "b"]) ids.unshift(approvalOf(await s.ask("POST", "/v1/api-tokens", { name })).id);
    await decideBy(api, ids[0] as string, "denied");
    const list = async (query = "") =>
      ((await s.ask("GET", `/v1/approvals${query}`)).body["approvals"] as { id: string }[]).map(({ id }) => id);
    assert.deepEqual(await list(), ids);
    assert.deepEqual(await list("?status=pending"), [ids[1]]);
    const stranger = await scene();
    assert.equal((await stranger.ask("GET", `/v1/approvals/${ids[0]}`)).status, 404);
  });
});

describe("against asking too often", () => {
  test("a denial stands for ten minutes, whatever the body", async () => {
    const s = await scene();
    const send = (name: string) => s.ask("POST", "/v1/api-tokens", { name });
    const { id } = approvalOf(await send("x"));
    await decideBy(api, id, "denied");
    for (const name of ["x", "y"]) {
      const refused = await send(name);
      assert.equal(refused.body["code"], "approval_denied");
      assert.equal((refused.body["approval"] as { id: string }).id, id);
      assert.ok(Number(refused.headers.get("retry-after")) > 500);
    }
    await later(10 * 60_000 + 1000, async () => assert.notEqual(approvalOf(await send("x")).id, id));
  });

  test("at most 5 requests of a token and 50 of an organization wait", async () => {
    const s = await scene();
    const { db } = api.database;
    const agents = await Promise.all(
      Array.from({ length: 11 }, () => testToken(db, s.org.id, { role: "owner", approval_mode: true })),
    );
    const send = (token: string, name: string) => api.call("POST", "/v1/api-tokens", { token, body: { name } });
    const ofOne = await Promise.all(Array.from({ length: 9 }, (_, i) => send(agents[0]?.text ?? "", `n${i}`)));
    assert.equal(ofOne.filter(({ body }) => body["code"] === "approval_required").length, 5);
    const full = ofOne.find(({ status }) => status === 429);
    assert.match(full?.text ?? "", /This token already has 5 requests[^"]*"[^}]*berth approvals withdraw/);
    assert.ok(full?.headers.get("retry-after"));
    for (const { text } of agents.slice(1, 10)) for (let i = 0; i < 5; i += 1) approvalOf(await send(text, `n${i}`));
    assert.match((await send(agents[10]?.text ?? "", "n")).text, /The organization already has 50 requests/);
    const neighbour = await scene();
    approvalOf(await neighbour.ask("POST", "/v1/api-tokens", { name: "mine" }));
  });

  test("is withdrawn by its own token only, once, whether it is decided or not, and makes no room for more messages", async () => {
    const s = await scene();
    const twin = await testToken(api.database.db, s.org.id, { role: "owner", approval_mode: true });
    const { id } = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "withdrawn" }));
    const withdraw = (token: string) => api.call("DELETE", `/v1/approvals/${id}`, { token });
    for (const token of [twin.text, s.org.owner]) assert.equal((await withdraw(token)).body["code"], "forbidden");
    const waiting = s.ask("GET", `/v1/approvals/${id}?wait=50`);
    assert.equal((await s.ask("DELETE", `/v1/approvals/${id}`)).status, 204);
    assert.equal((await waiting).body["status"], "expired");
    assert.equal((await s.ask("DELETE", `/v1/approvals/${id}`)).body["code"], "conflict");
    const { activity } = (await api.call("GET", "/v1/activity", { token: s.org.owner })).body;
    assert.match(JSON.stringify(activity), /Withdrawn: Create the token \\"withdrawn\\"/);
    const approved = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "approved" }));
    await decideBy(api, approved.id, "approved");
    assert.equal((await s.ask("DELETE", `/v1/approvals/${approved.id}`)).status, 204);
    approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "approved" }));
    for (const name of ["b", "c"]) approvalOf(await s.ask("POST", "/v1/api-tokens", { name }));
    assert.equal((await s.ask("POST", "/v1/api-tokens", { name: "d" })).status, 429);
  });
});

describe("waiting for a decision", () => {
  test("ends as soon as it is made", async () => {
    const s = await scene();
    const { id } = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "w" }));
    const waiting = s.ask("GET", `/v1/approvals/${id}?wait=50`);
    await decideBy(api, id, "approved");
    assert.equal((await waiting).body["status"], "approved");
  });

  test("ends with the time that was asked for", async () => {
    const s = await scene();
    const { id } = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "w" }));
    assert.equal((await s.ask("GET", `/v1/approvals/${id}?wait=1`)).body["status"], "pending");
    assert.equal((await s.ask("GET", `/v1/approvals/${id}?wait=61`)).status, 400);
  });

  test("holds no connection to the database, however many wait", async () => {
    const s = await scene();
    const { id } = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "w" }));
    const waiting = Array.from({ length: 40 }, () => s.ask("GET", `/v1/approvals/${id}?wait=50`));
    assert.equal((await s.ask("GET", "/v1/projects")).status, 200);
    await decideBy(api, id, "denied");
    for (const called of await Promise.all(waiting)) assert.equal(called.body["status"], "denied");
  });

  test("ends when the waiting token is revoked", async () => {
    const s = await scene();
    const { id } = approvalOf(await s.ask("POST", "/v1/api-tokens", { name: "w" }));
    const waiter = await testToken(api.database.db, s.org.id, {});
    const waiting = api.call("GET", `/v1/approvals/${id}?wait=50`, { token: waiter.text });
    await api.call("DELETE", `/v1/api-tokens/${waiter.id}`, { token: s.org.owner });
    assert.equal((await waiting).status, 401);
  });
});

test("the link of a decision is in no answer, no log line, no activity, and not readable in the database", async () => {
  const s = await scene();
  const { project } = await testThings(api.platform, s.org);
  const { id } = approvalOf(await s.ask("DELETE", `/v1/projects/${project.slug}`));
  const path = await decisionPath(api, id);
  await decideBy(api, id, "denied");
  await s.ask("DELETE", `/v1/projects/${project.slug}`);
  await s.ask("GET", "/v1/approvals");
  await s.ask("GET", `/v1/approvals/${id}`);
  await api.call("GET", `${path}%zz`, {});
  const secret = path.split("/").at(-1) as string;
  const activity = await api.database.db.selectFrom("activity").selectAll().execute();
  const approvals = await api.database.db.selectFrom("approval").selectAll().execute();
  const notifications = await api.database.db.selectFrom("notification").selectAll().execute();
  const everywhere = JSON.stringify({ answers, logged, activity, approvals, notifications });
  assert.equal(secret.length, 43);
  assert.ok(!everywhere.includes(secret));
  assert.ok(!everywhere.includes("/decide/"));
  assert.ok(!Buffer.concat(notifications.flatMap(({ sealed_message }) => sealed_message ?? [])).includes(secret));
});
