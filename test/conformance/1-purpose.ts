import assert from "node:assert/strict";
import { it } from "node:test";
import type { Subject } from "./subject.ts";

/** Part 1 of the specification. */
export function purpose(subject: () => Subject): void {
  it("It offers deployment, runtime, a PostgreSQL database per project, storage, custom domains, cron jobs, secrets, logs, metrics, monitoring, backups and rollback", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities", { as: "nobody" });
    const paths = body.routes.map(({ method, path }: { method: string; path: string }) => `${method} ${path}`);
    for (const part of [
      "deployments",
      "database",
      "domains",
      "cron",
      "env",
      "logs",
      "metrics",
      "backups",
      "rollback",
      "scale",
    ])
      assert.ok(
        paths.some((path: string) => path.includes(`/v1/projects/:slug/${part}`)),
        part,
      );
    const { body: overview } = await subject().expect(200, "GET", "/v1/overview");
    assert.ok("storage_bytes" in overview.totals);
    assert.equal((await subject().visit("shop.localhost")).body, "two");
  });

  it("Every route is under /v1, and every request and response body is JSON", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/openapi.json", { as: "nobody" });
    assert.ok(Object.keys(body.paths).every((path) => path.startsWith("/v1/")));
    const { headers } = await subject().expect(200, "GET", "/v1/me");
    assert.match(headers.get("content-type") ?? "", /^application\/json/);
    const form = { body: "slug=x&name=x", headers: { "content-type": "application/x-www-form-urlencoded" } };
    const refused = await subject().expect(415, "POST", "/v1/projects", form);
    assert.equal(refused.body.code, "unsupported_media_type");
    assert.equal(
      (await subject().expect(400, "POST", "/v1/projects", { body: "{not json" })).body.code,
      "invalid_request",
    );
  });

  it("Each organization owns projects, tokens, SSH keys, approval requests and activity", async () => {
    for (const [path, list] of [
      ["/v1/projects", "projects"],
      ["/v1/api-tokens", "api_tokens"],
      ["/v1/ssh-keys", "ssh_keys"],
      ["/v1/approvals", "approvals"],
      ["/v1/activity", "activity"],
    ] as const) {
      const mine = (await subject().expect(200, "GET", path)).body[list];
      const theirs = (await subject().expect(200, "GET", path, { as: "stranger" })).body[list];
      const ids = new Set(mine.map(({ id }: { id: string }) => id));
      assert.ok(!theirs.some(({ id }: { id: string }) => ids.has(id)), path);
    }
  });

  it("An API token belongs to exactly one organization", async () => {
    const organizationOf = async (as: string) =>
      (await subject().expect(200, "GET", "/v1/me", { as })).body.organization.slug;
    assert.deepEqual([await organizationOf("owner"), await organizationOf("stranger")], ["main", "acme"]);
  });

  it("The service describes itself, and both routes need no token", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities", { as: "nobody" });
    assert.ok(body.routes.length > 0 && body.scopes.length > 0 && body.error_codes.length > 0);
    assert.match((await subject().expect(200, "GET", "/v1/openapi.json", { as: "nobody" })).body.openapi, /^3\./);
  });

  it("Routes marked operator-only return 403 to any caller who is not a platform admin", async () => {
    for (const as of ["owner", "member", "stranger"])
      for (const [method, path, body] of operatorRoutes) {
        const refused = await subject().expect(403, method, path, { as, ...(body === undefined ? {} : { body }) });
        assert.equal(refused.body.code, "operator_only", `${method} ${path}`);
      }
  });
}

const operatorRoutes = [
  ["PUT", "/v1/projects/shop/scale", { replicas: 1 }],
  ["POST", "/v1/orgs", { slug: "more", name: "More" }],
  ["GET", "/v1/orgs"],
  ["POST", "/v1/orgs/acme/disable"],
  ["POST", "/v1/orgs/acme/enable"],
  ["GET", "/v1/status"],
  ["GET", "/v1/alerts"],
  ["GET", "/v1/platform/overview"],
] as const;
