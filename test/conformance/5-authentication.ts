import assert from "node:assert/strict";
import { it } from "node:test";
import type { Json, Subject } from "./subject.ts";

/** Part 5 of the specification. */
export function access(subject: () => Subject): void {
  it("1. Every call carries the header Authorization: Bearer; the two self-description routes need no token", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities", { as: "nobody" });
    for (const { method, path, access } of body.routes as Json[]) {
      if (access === "public") continue;
      const filled = path.replaceAll(/:\w+/g, "x");
      const given = method === "GET" ? {} : { body: {} };
      const refused = await subject().expect(401, method, filled, { as: "nobody", ...given });
      assert.equal(refused.headers.get("www-authenticate"), "Bearer");
      assert.equal(refused.body.code, "unauthorized");
    }
  });

  it("Only that header authenticates: no query string, no cookie, no other scheme", async () => {
    const token = subject().tokens.owner;
    const path = `/v1/me?token=${token}&access_token=${token}`;
    const headers = {
      cookie: `token=${token}`,
      "x-api-key": token,
      authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}`,
    };
    await subject().expect(401, "GET", path, { as: "nobody", headers });
  });

  it("2. The organization is taken from the token only: an organization named elsewhere has no effect", async () => {
    const { body: org } = await subject().expect(200, "GET", "/v1/me", { as: "stranger" });
    const headers = { "x-organization": org.organization.slug, "x-org-id": org.organization.id };
    const path = `/v1/projects?org=${org.organization.slug}&organization_id=${org.organization.id}`;
    const { body } = await subject().expect(200, "GET", path, { headers });
    assert.ok(body.projects.some(({ slug }: Json) => slug === "shop"));
    const named = { body: { slug: "named", name: "Named", organization: org.organization.slug } };
    await subject().expect(201, "POST", "/v1/projects", named);
    await subject().expect(200, "GET", "/v1/projects/named");
    await subject().expect(404, "GET", "/v1/projects/named", { as: "stranger" });
  });

  it("3. A request for a resource in another organization returns the same 404 response as for one that does not exist", async () => {
    const writes: readonly [string, string, Json?][] = [
      ["PUT", "/settings", { port: 3000 }],
      ["DELETE", ""],
      ["POST", "/rollback"],
      ["PUT", "/env/A", { value: "x" }],
      ["POST", "/domains", { hostname: "www.theirs.test" }],
      ["PUT", "/cron/x", { schedule: "* * * * *", path: "/" }],
      ["POST", "/database"],
      ["POST", "/data/tables/public/item/rows", { values: {} }],
      ["POST", "/backups"],
      ["POST", "/restore", {}],
    ];
    for (const [method, rest, body] of writes) {
      const given = { as: "stranger", ...(body === undefined ? {} : { body }) };
      const theirs = await subject().expect(404, method, `/v1/projects/shop${rest}`, given);
      const missing = await subject().expect(404, method, `/v1/projects/missing${rest}`, given);
      assert.equal(theirs.text, missing.text, `${method} ${rest}`);
      assert.deepEqual(headersOf(theirs.headers), headersOf(missing.headers));
    }
  });

  it("4. Owner-only routes refuse members: settings, table row writes", async () => {
    const row = "/v1/projects/shop/data/tables/public/item/rows";
    for (const [method, path, body] of [
      ["PUT", "/v1/projects/shop/settings", { port: null }],
      ["POST", row, { values: { name: "x" } }],
      ["DELETE", row, { key: { id: "1" } }],
    ] as const) {
      assert.equal((await subject().expect(403, method, path, { as: "member", body })).body.code, "owner_only");
    }
  });

  it("5. Token creation accepts role, scopes and expires_in_days; rights are a part of the creator's", async () => {
    const { body: capabilities } = await subject().expect(200, "GET", "/v1/capabilities");
    const made = await subject().expect(201, "POST", "/v1/api-tokens", { body: { name: "defaults" } });
    subject().secrets.add(made.body.token);
    assert.equal(made.body.role, "member");
    assert.ok(made.body.scopes.every((scope: string) => capabilities.scopes.includes(scope)));
    const refused = await subject().expect(403, "POST", "/v1/api-tokens", {
      as: "member",
      body: { name: "more", role: "owner" },
    });
    assert.equal(refused.body.code, "forbidden");
    for (const expires_in_days of [0, 366, 1.5, "90"])
      await subject().expect(400, "POST", "/v1/api-tokens", { body: { name: "x", expires_in_days } });
    await subject().expect(400, "POST", "/v1/api-tokens", { body: { name: "x", scopes: ["everything"] } });
    await subject().expect(204, "DELETE", `/v1/api-tokens/${made.body.id}`);
  });

  it("6. A token in approval mode makes deletion wait for human approval, on every route that deletes", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities");
    // Withdrawing one's own request for an approval deletes nothing else.
    const deleting = (body.routes as Json[]).filter(
      ({ method, name }) => method === "DELETE" && name !== "approvals.withdraw",
    );
    assert.ok(deleting.length >= 8 && deleting.every(({ approval }) => approval));
  });

  it("7. The owner token of a new organization is shown once, at creation; the last owner token cannot be deleted", async () => {
    const { body: me } = await subject().expect(200, "GET", "/v1/me", { as: "stranger" });
    assert.equal(
      (await subject().expect(409, "DELETE", `/v1/api-tokens/${me.token.id}`, { as: "stranger" })).body.code,
      "last_owner_token",
    );
    const { orgs } = (await subject().expect(200, "GET", "/v1/orgs", { as: "operator" })).body;
    assert.ok(orgs.every((org: Json) => !("owner_token" in org)));
  });
}

// Headers with ids, times and request counters differ between any two responses.
function headersOf(headers: Headers): Record<string, string> {
  const varying = /^(?:date|x-request-id|ratelimit-.*)$/;
  return Object.fromEntries([...headers].filter(([name]) => !varying.test(name)));
}
