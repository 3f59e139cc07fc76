import assert from "node:assert/strict";
import { it } from "node:test";
import type { Json, Subject } from "./subject.ts";

/** Part 9 of the specification. */
export function versioning(subject: () => Subject): void {
  it("Every route is under the path prefix /v1", async () => {
    for (const path of ["/projects", "/v2/projects", "/v1projects", "/v1"]) {
      const response = await fetch(`${subject().platform.api}${path}`, {
        headers: { authorization: `Bearer ${subject().tokens.owner}` },
      });
      assert.equal(response.status, 404, path);
      await response.body?.cancel();
    }
  });

  it("The route list and scopes are generated from one table: both documents name the same routes, access and scopes", async () => {
    const { body: capabilities } = await subject().expect(200, "GET", "/v1/capabilities");
    const { body: document } = await subject().expect(200, "GET", "/v1/openapi.json");
    const described = Object.entries(document.paths as Json).flatMap(([path, methods]) =>
      Object.entries(methods as Json).map(
        ([method, one]: [string, Json]) =>
          `${method.toUpperCase()} ${path} ${one.operationId} ${one["x-access"]} ${one["x-scope"]}`,
      ),
    );
    const listed = capabilities.routes.map(
      (row: Json) => `${row.method} ${row.path.replaceAll(/:(\w+)/g, "{$1}")} ${row.name} ${row.access} ${row.scope}`,
    );
    assert.deepEqual(described.toSorted(), listed.toSorted());
    const used = new Set(
      capabilities.routes.map(({ scope }: Json) => scope).filter((scope: unknown) => scope !== null),
    );
    for (const scope of used) assert.ok(capabilities.scopes.includes(scope), String(scope));
  });

  it("The server requires the scopes that capabilities lists", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities");
    const guarded = body.routes.filter(
      ({ scope, access, path, method }: Json) =>
        scope !== null && scope !== "projects:read" && access === "member" && method === "GET" && !path.includes(":id"),
    );
    for (const { path, scope } of guarded) {
      const filled = path
        .replace(":slug", "shop")
        .replace(":schema", "public")
        .replace(":table", "item")
        .replace(":name", "nightly");
      const refused = await subject().expect(403, "GET", filled, { as: "limited" });
      assert.equal(refused.body.code, "insufficient_scope");
      assert.ok(refused.body.error.includes(scope), refused.text);
    }
    await subject().expect(200, "GET", "/v1/projects", { as: "limited" });
  });

  it("Responses may have further fields; requests with unknown fields are refused by name, unknown query parameters ignored", async () => {
    const refused = await subject().expect(400, "POST", "/v1/projects", {
      body: { slug: "x", name: "x", colour: "red" },
    });
    assert.match(refused.text, /colour/);
    await subject().expect(200, "GET", "/v1/projects?colour=red");
  });
}
