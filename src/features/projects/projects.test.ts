import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { eventually } from "../../../test/support/eventually.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { newId } from "../../kit/ids.ts";
import type { Tx } from "../../store/database.ts";
import { changedRoutes } from "../routes/routes.ts";
import { deleteExpiredNames, lockProject } from "./projects.ts";
import { isHostnameTaken } from "./queries.ts";

const api = await sharedApi();

const create = (token: string, slug: string) =>
  api.call("POST", "/v1/projects", { token, body: { slug, name: "A name" } });

test("a new project answers with everything a user needs to push to it", async () => {
  const org = await testOrganization(api.database.db, "first");
  const { status, body } = await create(org.member, "demo");
  assert.equal(status, 201);
  assert.match(String(body["id"]), /^prj_/);
  const { url, git, state, replicas, port, health_path, active_deployment, deleted_at } = body;
  assert.deepEqual(
    { url, git, state, replicas, port, health_path, active_deployment, deleted_at },
    {
      url: "http://demo.apps.test:8080",
      git: { ssh: "ssh://git@git.test:2222/first/demo.git", https: "http://git.test/git/first/demo.git" },
      state: "active",
      replicas: 1,
      port: null,
      health_path: null,
      active_deployment: null,
      deleted_at: null,
    },
  );
  assert.equal(body["org_id"], undefined);
});

test("a slug is unique in its organization alone, and no hostname tells whether another organization has it", async () => {
  const [one, two] = [await testOrganization(api.database.db, "one"), await testOrganization(api.database.db, "two")];
  for (const { member } of [one, two])
    assert.match(String((await create(member, "shop")).body["url"]), /^http:\/\/shop-[a-z0-9]{6}\.apps\.test:8080$/);
  const again = await create(one.member, "shop");
  assert.deepEqual([again.status, again.body["code"]], [409, "slug_taken"]);
});

test("the limit holds under 50 creations at once", async () => {
  const org = await testOrganization(api.database.db, "limited", { maxProjects: 7 });
  // On a slow machine, a request that waited 5 s for a database connection gets 503. It has created nothing.
  const answered = async (slug: string) => {
    const called = await create(org.member, slug);
    return called.status !== 503 && called;
  };
  const created = await Promise.all(
    Array.from({ length: 50 }, (_, i) => eventually(() => answered(`p${i}`), `an answer for p${i}`)),
  );
  assert.equal(created.filter(({ status }) => status === 201).length, 7);
  assert.deepEqual(new Set(created.map(({ body }) => body["code"])), new Set([undefined, "project_limit_reached"]));
});

test("one slug created 20 times at once exists once", async () => {
  const org = await testOrganization(api.database.db, "racing");
  const created = await Promise.all(Array.from({ length: 20 }, () => create(org.member, "same")));
  assert.deepEqual(
    created.map(({ status }) => status).toSorted((a, b) => a - b),
    [201, ...Array.from({ length: 19 }, () => 409)],
  );
});

test("a deleted project makes room, and undelete asks for room again, also when several ask at once", async () => {
  const org = await testOrganization(api.database.db, "full", { maxProjects: 2 });
  for (const slug of ["a", "b"]) await create(org.member, slug);
  for (const slug of ["a", "b"]) await api.call("DELETE", `/v1/projects/${slug}`, { token: org.member });
  assert.equal((await create(org.member, "c")).status, 201);
  const back = await Promise.all(
    ["a", "b"].map((slug) => api.call("POST", `/v1/projects/${slug}/undelete`, { token: org.member })),
  );
  assert.deepEqual(
    back.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 403],
  );
});

test("deleted projects take space until they are purged, so an organization keeps only so many", async () => {
  const org = await testOrganization(api.database.db, "hoarding", { maxProjects: 1 });
  for (const slug of ["a", "b", "c", "d", "e"]) {
    assert.equal((await create(org.member, slug)).status, 201);
    await api.call("DELETE", `/v1/projects/${slug}`, { token: org.member });
  }
  const refused = await create(org.member, "f");
  assert.deepEqual([refused.status, refused.body["code"]], [403, "project_limit_reached"]);
  assert.match(String(refused.body["error"]), /keeps 5 deleted projects/);
  await api.database.pool.query("update project set purged_at = now() where org_id = $1 and slug = 'a'", [org.id]);
  assert.equal((await create(org.member, "f")).status, 201);
});

test("a deleted project still answers, is hidden from the list, keeps its slug, and refuses everything else", async () => {
  const org = await testOrganization(api.database.db, "deleting");
  const { token } = { token: org.owner };
  await create(token, "gone");
  assert.equal((await api.call("DELETE", "/v1/projects/gone", { token })).body["state"], "deleted");
  assert.equal((await api.call("GET", "/v1/projects/gone", { token })).body["state"], "deleted");
  assert.deepEqual((await api.call("GET", "/v1/projects", { token })).body, { projects: [] });
  assert.equal(
    ((await api.call("GET", "/v1/projects?deleted=true", { token })).body["projects"] as unknown[]).length,
    1,
  );
  const taken = (await create(token, "gone")).body as { code: string; next: { route: string } };
  assert.deepEqual([taken.code, taken.next.route], ["slug_taken", "projects.undelete"]);
  const refused = [
    await api.call("DELETE", "/v1/projects/gone", { token }),
    await api.call("PUT", "/v1/projects/gone/settings", { token, body: { port: 1 } }),
    await api.call("GET", "/v1/projects/gone/env", { token }),
    await api.call("GET", "/v1/projects/gone/deployments", { token }),
    await api.call("GET", "/v1/projects/gone/timeline", { token }),
  ];
  for (const { status, body } of refused) assert.deepEqual([status, body["code"]], [409, "project_deleted"]);
  assert.equal(refused.at(-1)?.body["hint"], "Undelete it first: `berth projects undelete gone`.");
  assert.equal((await api.call("POST", "/v1/projects/gone/undelete", { token })).body["state"], "active");
  assert.equal((await api.call("POST", "/v1/projects/gone/undelete", { token })).body["code"], "conflict");
});

test("settings change what is given, null resets, and nothing given changes nothing", async () => {
  const org = await testOrganization(api.database.db, "settings");
  await create(org.member, "site");
  const put = (body: unknown) => api.call("PUT", "/v1/projects/site/settings", { token: org.owner, body });
  const shown = async (body: unknown) => {
    const { body: answer } = await put(body);
    return [answer["port"], answer["health_path"], answer["storage"]];
  };
  assert.deepEqual(await shown({ port: 8000, health_path: "/up?x=1" }), [8000, "/up?x=1", true]);
  assert.deepEqual(await shown({ storage: false }), [8000, "/up?x=1", false]);
  assert.deepEqual(await shown({ port: null }), [null, "/up?x=1", false]);
  assert.deepEqual(await shown({}), [null, "/up?x=1", false]);
  for (const body of [
    { port: 0 },
    { port: 65_536 },
    { port: 1.5 },
    { health_path: "up" },
    { health_path: "//host" },
    { health_path: "/a b" },
    { slug: "x" },
  ]) {
    assert.equal((await put(body)).status, 400, JSON.stringify(body));
  }
});

test("a renamed project answers under both names, which no other project gets until the earlier one expires", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "renaming");
  const id = String((await create(org.member, "before")).body["id"]);
  const rename = (slug: string, to: string) =>
    api.call("POST", `/v1/projects/${slug}/rename`, { token: org.owner, body: { slug: to } });
  const get = (slug: string) => api.call("GET", `/v1/projects/${slug}`, { token: org.member });
  const hostnames = async () => {
    const { projects } = await changedRoutes(db, null);
    return projects
      .find(({ project_id }) => project_id === id)
      ?.routes.map(({ hostname }) => hostname)
      .toSorted();
  };
  const [first] = (await hostnames()) ?? [];
  const renamed = await rename("before", "after");
  assert.deepEqual([renamed.status, renamed.body["slug"]], [200, "after"], renamed.text);
  assert.match(String((renamed.body["git"] as { ssh: string }).ssh), /\/renaming\/after\.git$/);
  const [earlier] = renamed.body["earlier_names"] as { slug: string; url: string }[];
  assert.deepEqual([earlier?.slug, earlier?.url], ["before", `http://${first}:8080`]);
  const both = (await hostnames()) ?? [];
  assert.ok(both.length === 2 && both.includes(String(first)) && both.some((name) => name.startsWith("after")));
  assert.deepEqual([(await get("before")).body["id"], (await get("before")).body["slug"]], [id, "after"]);
  const taken = await create(org.member, "before");
  assert.deepEqual([taken.status, taken.body["code"]], [409, "slug_taken"], taken.text);
  await create(org.member, "third");
  for (const to of ["before", "after"])
    assert.equal((await rename("third", to)).body["code"], "slug_taken", `${to} is another project's`);

  const back = await rename("after", "before");
  assert.deepEqual([back.body["slug"], back.body["url"]], ["before", `http://${first}:8080`]);
  for (const to of ["n1", "n2", "n3", "n4"]) assert.equal((await rename("before", to)).status, 200, to);
  assert.equal((await rename("before", "n5")).body["code"], "conflict");

  await db
    .updateTable("earlier_name")
    .set({ expires_at: new Date(0) })
    .where("project_id", "=", id)
    .execute();
  assert.ok((await deleteExpiredNames(db)) >= 5);
  assert.equal((await hostnames())?.length, 1);
  assert.equal((await get("before")).status, 404);
  assert.equal((await create(org.member, "before")).status, 201);
});

test("an earlier hostname is no other organization's", async () => {
  const { db } = api.database;
  const owner = await testOrganization(db, "hosting");
  await create(owner.member, "host");
  const { body } = await api.call("POST", "/v1/projects/host/rename", { token: owner.owner, body: { slug: "moved" } });
  const [earlier] = body["earlier_names"] as { url: string }[];
  const hostname = new URL(String(earlier?.url)).hostname;
  await db.transaction().execute(async (tx) => {
    assert.equal(await isHostnameTaken(tx, hostname), true);
    assert.equal(await isHostnameTaken(tx, `free-${hostname}`), false);
  });
});

test("maintenance has a time and a text, changes the project's routes, and ends without a trace", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "maintained");
  const id = String((await create(org.member, "shop")).body["id"]);
  const put = async (body: unknown) => {
    const { body: answer } = await api.call("PUT", "/v1/projects/shop/maintenance", { token: org.member, body });
    return answer["maintenance"] as { since: string; message: string | null } | null;
  };
  const route = async () => {
    const { projects } = await changedRoutes(db, null);
    const [own] = projects.find(({ project_id }) => project_id === id)?.routes ?? [];
    return { state: own?.state, notice: own?.notice };
  };
  const on = await put({ on: true, message: "  Back at five " });
  assert.equal(on?.message, "Back at five");
  assert.deepEqual(await route(), { state: "maintenance", notice: "Back at five" });
  assert.deepEqual(await put({ on: true }), on, "a second call keeps both");
  assert.equal((await put({ on: true, message: null }))?.message, null);
  assert.deepEqual(await route(), { state: "maintenance", notice: undefined });
  assert.equal(await put({ on: false }), null);
  assert.deepEqual(await route(), { state: "empty", notice: undefined });
  for (const body of [{}, { on: 1 }, { on: true, message: "two\nlines" }, { on: true, message: "x".repeat(301) }]) {
    const { status } = await api.call("PUT", "/v1/projects/shop/maintenance", { token: org.member, body });
    assert.equal(status, 400, JSON.stringify(body));
  }
});

test("slugs that would be confused with the platform are refused", async () => {
  const org = await testOrganization(api.database.db, "names");
  for (const slug of ["api", "git", "www", "-a", "a-", "A", "a_b", "a".repeat(41), "", "ä"])
    assert.equal((await create(org.member, slug)).status, 400, slug);
  for (const slug of ["a", "0", "a--b", "a".repeat(40)])
    assert.equal((await create(org.member, slug)).status, 201, slug);
});

test("a name holds no mark that changes the direction of text, and no line break", async () => {
  const org = await testOrganization(api.database.db, "marks");
  for (const mark of ["\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2028", "\u2066", "\u2069", "\n", "\u001b"]) {
    const { status, body } = await api.call("POST", "/v1/projects", {
      token: org.member,
      body: { slug: "marked", name: `safe${mark}name` },
    });
    assert.deepEqual([status, body["code"]], [400, "invalid_request"], JSON.stringify(mark));
  }
});

test("every change leaves one activity row of its actor, a refused one none", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "watched");
  await create(org.owner, "seen");
  await create(org.owner, "seen");
  for (const _ of ["changes", "is the same"])
    await api.call("PUT", "/v1/projects/seen/settings", { token: org.owner, body: { port: 99, root: null } });
  await api.call("DELETE", "/v1/projects/seen", { token: org.owner });
  const rows = await db.selectFrom("activity").selectAll().where("org_id", "=", org.id).orderBy("id").execute();
  const deleted = rows.at(-1);
  assert.ok(deleted);
  const { undelete_until } = deleted.detail as { undelete_until: string };
  const days = (Date.parse(undelete_until) - Date.parse(deleted.created_at)) / 86_400_000;
  assert.equal(Math.round(days), api.platform.settings.purgeDays);
  assert.deepEqual(
    rows.map(({ action, target, detail, actor_name }) => ({ action, target, detail, actor_name })),
    [
      { action: "project.created", target: "seen", detail: {}, actor_name: "test" },
      {
        action: "project.settings_changed",
        target: "seen",
        detail: { changed: ["port"], before: { port: null }, after: { port: 99 } },
        actor_name: "test",
      },
      { action: "project.deleted", target: "seen", detail: { undelete_until }, actor_name: "test" },
    ],
  );
});

test("a locked project makes those wait who want to lock it too, and nobody who only refers to it", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "locking");
  const created = await create(org.member, "held");
  const key = { org_id: org.id, project_id: String(created.body["id"]) };
  const impatient = <T>(work: (tx: Tx) => Promise<T>) =>
    db.transaction().execute(async (tx) => {
      await sql`set local lock_timeout = '100ms'`.execute(tx);
      return work(tx);
    });
  const refer = (tx: Tx) =>
    tx
      .insertInto("activity")
      .values({ id: newId("evt"), ...key, actor_name: "test", action: "test" })
      .execute();
  await db.transaction().execute(async (tx) => {
    assert.equal((await lockProject(tx, key))?.slug, "held");
    await assert.rejects(
      impatient((other) => lockProject(other, key)),
      { code: "55P03" },
    );
    await impatient(refer);
  });
  assert.equal(await impatient((tx) => lockProject(tx, { ...key, org_id: "org_other" })), undefined);
});

test("a token in approval mode gives previews neither the project's variables nor unmasked data, nor changes what agents may do", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "gives");
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  await api.call("POST", "/v1/projects", { token: org.owner, body: { slug: "kept", name: "Kept" } });
  const put = (token: string, body: object) => api.call("PUT", "/v1/projects/kept/settings", { token, body });
  assert.equal((await put(org.owner, { preview_variables: ["LOG_LEVEL", "API_URL"] })).status, 200);
  for (const body of [{ preview_variables: ["SECRET"] }, { preview_data: "branch" }, { agents: "deploy" }]) {
    const refused = await put(agent.text, body);
    assert.deepEqual([refused.status, refused.body["code"]], [403, "forbidden"], JSON.stringify(body));
  }
  for (const body of [{ preview_variables: ["API_URL"] }, { preview_variables: null }, { preview_data: "masked" }])
    assert.equal((await put(agent.text, body)).status, 200, JSON.stringify(body));
  assert.equal((await put(agent.text, { root: "apps/web" })).status, 200);
  assert.equal((await put(org.owner, { agents: "preview" })).status, 200);
  const elsewhere = await put(agent.text, { root: "examples" });
  assert.deepEqual([elsewhere.status, elsewhere.body["code"]], [403, "forbidden"], "another folder has another mask");
  assert.equal((await put(agent.text, { root: "apps/web", port: 4000 })).status, 200);
});

test("where agents deploy to previews only, they set the variables of previews only, earlier values included", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "guards");
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  await api.call("POST", "/v1/projects", { token: org.owner, body: { slug: "guarded", name: "Guarded" } });
  const set = (token: string, body: object, slug = "guarded") =>
    api.call("PUT", `/v1/projects/${slug}/env/NODE_OPTIONS`, { token, body });
  const value = { value: "--import=data:text/javascript,takeOver()" };
  assert.equal((await set(agent.text, value)).status, 204);
  const settings = { token: org.owner, body: { agents: "preview" } };
  assert.equal((await api.call("PUT", "/v1/projects/guarded/settings", settings)).status, 200);
  const variables = { token: agent.text, body: { variables: { NODE_OPTIONS: value.value } } };
  for (const refused of [
    await set(agent.text, value),
    await set(agent.text, { from_deployment: 1 }),
    await api.call("PATCH", "/v1/projects/guarded/env", variables),
  ])
    assert.deepEqual([refused.status, refused.body["code"]], [403, "forbidden"], refused.text);
  assert.equal((await set(org.owner, value)).status, 204);
  await api.call("POST", "/v1/projects", { token: org.owner, body: { slug: "fix", name: "Fix" } });
  const parent = db.selectFrom("project").select("id").where("slug", "=", "guarded").where("org_id", "=", org.id);
  const preview = {
    git_branch: "fix",
    preview_expires_at: new Date(Date.now() + 3_600_000),
    preview_of: await parent.executeTakeFirstOrThrow().then(({ id }) => id),
    agents: "preview",
  } as const;
  await db.updateTable("project").set(preview).where("slug", "=", "fix").where("org_id", "=", org.id).execute();
  assert.equal((await set(agent.text, value, "fix")).status, 204);
});
