import assert from "node:assert/strict";
import { test } from "node:test";
import { scopes } from "../../contract/access.ts";
import { limits } from "../../contract/limits.ts";
import { testDatabase } from "../../../test/support/database.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { hashOf, isTokenText, newTokenText } from "./rules.ts";
import { authenticate, createFirstOrganization } from "./tokens.ts";

const api = await sharedApi();

const create = (token: string, body: object) => api.call("POST", "/v1/api-tokens", { token, body });

test("a token's text is recognisable, checked, and different each time", () => {
  const text = newTokenText("o");
  assert.match(text, /^berth_o_[0-9A-Za-z]{49}$/);
  assert.ok(isTokenText(text));
  assert.notEqual(newTokenText("o"), text);
  for (let at = 0; at < text.length; at += 1) {
    const changed = text.slice(0, at) + (text[at] === "x" ? "y" : "x") + text.slice(at + 1);
    assert.ok(!isTokenText(changed), changed);
  }
});

test("a program's token that nobody has used for 30 days ends and is listed no more; a person's own goes on", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "forgotten");
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const made = async (name: string, values: { kind?: "cli" | "mcp"; created_at: string; last_used_at?: string }) => {
    const { body } = await create(org.owner, { name });
    await db.updateTable("api_token").set(values).where("id", "=", String(body["id"])).execute();
    return String(body["token"]);
  };
  const tokens = [
    await made("never used", { kind: "cli", created_at: ago(31) }),
    await made("unused", { kind: "mcp", created_at: ago(60), last_used_at: ago(31) }),
    await made("used", { kind: "cli", created_at: ago(60), last_used_at: ago(29) }),
    await made("own", { created_at: ago(60), last_used_at: ago(31) }),
  ];
  const { api_tokens: listed } = (await api.call("GET", "/v1/api-tokens", { token: org.owner })).body as {
    api_tokens: { name: string }[];
  };
  const names = listed.map(({ name }) => name);
  assert.deepEqual([names.includes("never used"), names.includes("unused")], [false, false]);
  assert.deepEqual([names.includes("used"), names.includes("own")], [true, true]);
  const statuses = [];
  for (const token of tokens) statuses.push((await api.call("GET", "/v1/projects", { token })).status);
  assert.deepEqual(statuses, [401, 401, 200, 200]);
});

test("a new token is shown once, and only its hash is kept", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "shown");
  const { status, body } = await create(org.owner, { name: "ci" });
  assert.equal(status, 201);
  const text = String(body["token"]);
  assert.match(text, /^berth_m_/);
  assert.equal(body["prefix"], text.slice(8, 16));
  assert.deepEqual([body["role"], body["approval_mode"]], ["member", false]);
  const beyond = [
    ...["data:write", "orgs:read", "orgs:write", "platform:read"],
    ...["registries:write", "webhooks:read", "webhooks:write"],
  ];
  assert.deepEqual(
    body["scopes"],
    scopes.filter((scope) => !beyond.includes(scope)),
    "what a member's role may use",
  );
  const days = (Date.parse(String(body["expires_at"])) - Date.parse(String(body["created_at"]))) / 86_400_000;
  assert.equal(days, 90);
  const row = await db
    .selectFrom("api_token")
    .selectAll()
    .where("id", "=", String(body["id"]))
    .executeTakeFirstOrThrow();
  assert.deepEqual(row.hash, hashOf(text));
  const listed = await api.call("GET", "/v1/api-tokens", { token: org.owner });
  assert.ok(!listed.text.includes(text));
  assert.ok(!JSON.stringify(await db.selectFrom("activity").selectAll().execute()).includes(text));
  assert.equal((await api.call("GET", "/v1/me", { token: text })).status, 200);
});

test("an organization has a limited number of tokens, each of which has limits of its own", async () => {
  const { db, pool } = api.database;
  const org = await testOrganization(db, "minting");
  const most = limits.tokens_per_organization;
  await pool.query(
    `insert into api_token (id, org_id, name, role, platform_admin, scopes, approval_mode, prefix, hash)
    select 'tok_many' || n, $1, 'many', 'member', false, '{}', false, 'x', sha256(n::text::bytea)
    from generate_series(1, $2::integer - (select count(*) from api_token where org_id = $1)) n`,
    [org.id, most - 1],
  );
  const made = await create(org.member, { name: "last" });
  assert.equal(made.status, 201, made.text);
  const refused = await create(org.owner, { name: "one more" });
  assert.deepEqual([refused.status, refused.body["code"]], [409, "conflict"]);
  await api.call("DELETE", `/v1/api-tokens/${String(made.body["id"])}`, { token: org.owner });
  assert.equal((await create(org.owner, { name: "one more" })).status, 201);
});

test("a new token never may more than its creator", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "subset");
  const narrow = await testToken(db, org.id, { scopes: ["tokens:write", "env:read"] });
  assert.equal((await create(org.member, { name: "x", role: "owner" })).body["code"], "forbidden");
  assert.equal((await create(narrow.text, { name: "x", scopes: ["env:write"] })).body["code"], "forbidden");
  assert.deepEqual(((await create(narrow.text, { name: "x" })).body["scopes"] as string[]).toSorted(), [
    "env:read",
    "tokens:write",
  ]);
  assert.equal((await create(org.owner, { name: "x", role: "owner" })).status, 201);
  const made = await create(org.operator, { name: "x", role: "owner" });
  assert.deepEqual([made.status, made.body["platform_admin"]], [201, false]);
});

test("the list holds the organization's own tokens, without revoked ones", async () => {
  const { db } = api.database;
  const [org, other] = [await testOrganization(db, "lists"), await testOrganization(db, "elsewhere")];
  const { body } = await create(org.owner, { name: "revoked" });
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${String(body["id"])}`, { token: org.owner })).status, 204);
  const { id } = await testToken(db, other.id, {});
  const program = { kind: "cli", prefix: "abcdefgh", expires_at: new Date("2100-01-01") } as const;
  await db.updateTable("api_token").set(program).where("id", "=", id).execute();
  const listed = async (token: string) => {
    const answer = await api.call("GET", "/v1/api-tokens", { token });
    return (answer.body["api_tokens"] as { id: string; name: string }[]).map((each) => each.id);
  };
  assert.ok(!(await listed(org.owner)).some((each) => [id, body["id"]].includes(each)));
  assert.ok((await listed(other.owner)).includes(id));
});

test("a token that was revoked in this moment is told so, also while it is still remembered", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "remembered");
  const { id, text } = await testToken(db, org.id, {});
  assert.equal((await api.call("GET", "/v1/me", { token: text })).status, 200);
  // This update wakes no cache, so the request comes before the token's removal is known.
  await db.updateTable("api_token").set({ revoked_at: new Date() }).where("id", "=", id).execute();
  const called = await api.call("GET", "/v1/me", { token: text });
  assert.deepEqual([called.status, called.body["code"]], [401, "unauthorized"]);
});

test("a member's token makes none that outlives it; an owner's does, or an organization would lock itself out", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "outliving");
  const expires_at = new Date(Date.now() + 5 * 86_400_000);
  const [member, owner] = [
    await testToken(db, org.id, { expires_at }),
    await testToken(db, org.id, { role: "owner", expires_at }),
  ];
  const ends = async (token: string, body: object) => (await create(token, { name: "x", ...body })).body["expires_at"];
  assert.equal(await ends(member.text, {}), expires_at.toISOString());
  assert.equal(await ends(member.text, { expires_in_days: 365 }), expires_at.toISOString());
  assert.ok(Date.parse(String(await ends(member.text, { expires_in_days: 1 }))) < expires_at.getTime());
  assert.ok(Date.parse(String(await ends(owner.text, { role: "owner" }))) > expires_at.getTime());
});

test("scopes of other versions, which no row asks for, are neither shown nor given on", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "earlier");
  const old = await testToken(db, org.id, { scopes: ["tokens:write", "tokens:read"] });
  const scopesThen = ["tokens:write", "logs:write", "tokens:read", "platform:write"];
  await db.updateTable("api_token").set({ scopes: scopesThen }).where("id", "=", old.id).execute();
  const { body } = await api.call("GET", "/v1/api-tokens", { token: old.text });
  const listed = (body["api_tokens"] as { id: string; scopes: string[] }[]).find(({ id }) => id === old.id);
  assert.deepEqual(listed?.scopes, ["tokens:read", "tokens:write"]);
  assert.deepEqual((await create(old.text, { name: "x" })).body["scopes"], ["tokens:read", "tokens:write"]);
  const me = await api.call("GET", "/v1/me", { token: old.text });
  assert.deepEqual((me.body["token"] as { scopes: string[] }).scopes, ["tokens:read", "tokens:write"]);
});

test("wrong wishes are refused by name", async () => {
  const org = await testOrganization(api.database.db, "wishes");
  for (const wish of [
    { expires_in_days: 0 },
    { expires_in_days: 366 },
    { role: "admin" },
    { scopes: [] },
    { scopes: ["all"] },
    { platform_admin: true },
    { name: "" },
  ]) {
    const { status, body } = await create(org.owner, { name: "x", ...wish });
    assert.equal(status, 400);
    assert.match(JSON.stringify(body["details"]), new RegExp(Object.keys(wish)[0] as string));
  }
});

test("the last owner token stays, also when both are deleted at once", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "last");
  const [one, two] = [
    await create(org.owner, { name: "one", role: "owner" }),
    await create(org.owner, { name: "two", role: "owner" }),
  ];
  // Leaves only these two.
  await db
    .updateTable("api_token")
    .set({ revoked_at: new Date() })
    .where("org_id", "=", org.id)
    .where("name", "=", "test")
    .execute();
  const [a, b] = [String(one.body["id"]), String(two.body["id"])];
  const deleted = await Promise.all([
    api.call("DELETE", `/v1/api-tokens/${a}`, { token: String(one.body["token"]) }),
    api.call("DELETE", `/v1/api-tokens/${b}`, { token: String(two.body["token"]) }),
  ]);
  assert.deepEqual(
    deleted.map(({ status }) => status).toSorted((a, b) => a - b),
    [204, 409],
  );
  assert.equal(deleted.find(({ status }) => status === 409)?.body["code"], "last_owner_token");
});

for (const [what, lesser] of Object.entries({
  "an expired owner token": { expires_at: new Date(Date.now() - 1000) },
  "an owner token in approval mode": { approval_mode: true },
  "an owner token with fewer scopes": { scopes: ["projects:read" as const] },
}))
  test(`${what} does not count as one`, async () => {
    const { db } = api.database;
    const org = await testOrganization(db, `lesser-${what.length}`);
    await db
      .updateTable("api_token")
      .set({ revoked_at: new Date() })
      .where("org_id", "=", org.id)
      .where("platform_admin", "=", true)
      .execute();
    await testToken(db, org.id, { role: "owner", ...lesser });
    const own = String(
      (await api.call("GET", "/v1/me", { token: org.owner })).body["token"] &&
        ((await api.call("GET", "/v1/me", { token: org.owner })).body["token"] as { id: string }).id,
    );
    assert.equal(
      (await api.call("DELETE", `/v1/api-tokens/${own}`, { token: org.owner })).body["code"],
      "last_owner_token",
    );
  });

test("every control plane is told when a token is revoked", async () => {
  const org = await testOrganization(api.database.db, "telling");
  const { id } = await testToken(api.database.db, org.id, {});
  const told: string[] = [];
  const stop = api.platform.wakeups.on("tokens", (text) => void told.push(text));
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${id}`, { token: org.owner })).status, 204);
  await eventually(() => told.includes(id), "the wake-up names the token");
  stop();
});

test("a member cannot revoke an owner's token, nor an owner an administrator's", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "revoking");
  const owner = await testToken(db, org.id, { role: "owner" });
  const admin = await testToken(db, org.id, { role: "owner", platform_admin: true });
  const remove = async (id: string, token: string) =>
    (await api.call("DELETE", `/v1/api-tokens/${id}`, { token })).status;
  assert.deepEqual([await remove(owner.id, org.member), await remove(admin.id, org.owner)], [403, 403]);
  assert.deepEqual(
    [await remove(owner.id, org.owner), await remove(owner.id, org.owner), await remove(admin.id, org.operator)],
    [204, 404, 204],
  );
});

test("the first start makes one organization for 1,000 projects with one administrator, also when several starts race", async () => {
  const database = await testDatabase();
  const kept: string[] = [];
  const keep = async (text: string) => void kept.push(text);
  const made = await Promise.all([1, 2, 3].map(() => createFirstOrganization(database.db, keep)));
  assert.equal(made.filter(Boolean).length, 1);
  assert.equal(kept.length, 1);
  const found = await authenticate(database.db, kept[0] as string);
  assert.deepEqual(
    [found?.caller.org_slug, found?.caller.platform_admin, found?.caller.role, found?.expires_at],
    ["main", true, "owner", null],
  );
  const { max_projects } = await database.db
    .selectFrom("organization")
    .select("max_projects")
    .executeTakeFirstOrThrow();
  assert.equal(max_projects, 1000);
  await database.drop();
});

test("a start of a newer version gives the first administrator the scopes that came with it, and nobody else", async () => {
  const database = await testDatabase();
  const { db } = database;
  const kept: string[] = [];
  await createFirstOrganization(db, async (text) => void kept.push(text));
  const { id: org } = await db.selectFrom("organization").select("id").executeTakeFirstOrThrow();
  const member = await testToken(db, org, { scopes: ["projects:read"] });
  await db
    .updateTable("api_token")
    .set({ scopes: ["projects:read"] })
    .execute();
  assert.equal(await createFirstOrganization(db, async () => {}), false);
  assert.deepEqual((await authenticate(db, kept[0] as string))?.caller.scopes, [...scopes]);
  assert.deepEqual((await authenticate(db, member.text))?.caller.scopes, ["projects:read"]);
  await database.drop();
});

test("when the first token cannot be kept, nothing is made and the next start tries again", async () => {
  const database = await testDatabase();
  await assert.rejects(
    createFirstOrganization(database.db, async () => Promise.reject(new Error("disk full"))),
    /disk full/,
  );
  assert.equal(await createFirstOrganization(database.db, async () => {}), true);
  await database.drop();
});
