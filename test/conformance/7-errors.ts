import assert from "node:assert/strict";
import { it } from "node:test";
import { createApp } from "../e2e/platform.ts";
import { frailApp } from "./shop-app.ts";
import type { Json, Subject } from "./subject.ts";

/** Part 7 of the specification. */
export function errorAnswers(subject: () => Subject): void {
  it("Errors are JSON with an error field, and a stable code that capabilities lists with this status", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities");
    const statuses = new Map(body.error_codes.map(({ code, status }: Json) => [code, status]));
    for (const [method, path, given] of wrong) {
      const answer = await subject().call(method, path, given);
      assert.equal(typeof answer.body.error, "string");
      assert.equal(statuses.get(answer.body.code), answer.status, `${method} ${path}: ${answer.text}`);
    }
  });

  it("An unsupported method on an existing path gives 405 and lists the supported methods", async () => {
    for (const method of ["PATCH", "QUERY", "PROPFIND", "PUT"]) {
      const refused = await subject().expect(405, method, "/v1/projects");
      assert.equal(refused.body.code, "method_not_allowed");
      assert.equal(refused.headers.get("allow"), "POST, GET, HEAD, OPTIONS");
    }
    assert.equal((await subject().expect(404, "QUERY", "/v1/nothing")).body.code, "not_found");
  });

  it("Every error code declares whether a retry can help", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities");
    for (const { code, retry, meaning } of body.error_codes)
      assert.ok(["yes", "no", "after_change"].includes(retry) && meaning.length > 10, code);
  });

  it("A resource in another organization gives the same 404 as a missing one", async () => {
    const [build] = (await subject().expect(200, "GET", "/v1/projects/shop/builds")).body.builds;
    for (const [theirs, missing] of [
      ["/v1/projects/shop", "/v1/projects/nothing"],
      ["/v1/projects/shop/env", "/v1/projects/nothing/env"],
      ["/v1/projects/shop/data/tables/public/item", "/v1/projects/nothing/data/tables/public/item"],
      [`/v1/builds/${build.id}`, "/v1/builds/bld_00000000000000000000000000"],
      [`/v1/builds/${build.id}/logs`, "/v1/builds/nonsense/logs"],
    ] as const) {
      const foreign = await subject().expect(404, "GET", theirs, { as: "stranger" });
      const absent = await subject().expect(404, "GET", missing, { as: "stranger" });
      assert.equal(foreign.text, absent.text, theirs);
    }
  });

  it("403: create project at the organization project limit", async () => {
    const made = await subject().expect(201, "POST", "/v1/orgs", {
      as: "operator",
      body: { slug: "tiny", name: "Tiny", max_projects: 1 },
    });
    const as: string = made.body.owner_token;
    await subject().expect(201, "POST", "/v1/projects", { as, body: { slug: "a", name: "A" } });
    const refused = await subject().expect(403, "POST", "/v1/projects", { as, body: { slug: "b", name: "B" } });
    assert.equal(refused.body.code, "project_limit_reached");
    await subject().expect(200, "DELETE", "/v1/projects/a", { as });
    await subject().expect(201, "POST", "/v1/projects", { as, body: { slug: "b", name: "B" } });
    assert.equal(
      (await subject().expect(403, "POST", "/v1/projects/a/undelete", { as })).body.code,
      "project_limit_reached",
    );
  });

  it("PATCH env sets several variables or a .env file's at once; a file that cannot be read changes nothing", async () => {
    const set = await subject().expect(200, "PATCH", "/v1/projects/fields/env", { body: { file: "ONE=1\nTWO=''\n" } });
    assert.deepEqual(set.body, { changed: ["ONE", "TWO"], unchanged: [] });
    const cut = await subject().expect(400, "PATCH", "/v1/projects/fields/env", { body: { file: 'ONE="2" 3' } });
    assert.match(JSON.stringify(cut.body.details), /line 1 \(ONE\)/);
    for (const key of ["ONE", "TWO"]) await subject().expect(204, "DELETE", `/v1/projects/fields/env/${key}`);
  });

  it("409: env write of a system key; rollback with nothing to roll back to", async () => {
    for (const key of ["PORT", "DATABASE_URL", "PGHOST", "BERTH_URL"]) {
      const refused = await subject().expect(409, "PUT", `/v1/projects/shop/env/${key}`, { body: { value: "x" } });
      assert.equal(refused.body.code, "system_variable");
    }
    assert.equal(
      (await subject().expect(409, "POST", "/v1/projects/fields/rollback")).body.code,
      "nothing_to_roll_back",
    );
  });

  it("502: rollback when the previous deployment is unhealthy; the current one keeps serving", async () => {
    const call = (method: string, path: string, body?: unknown) =>
      subject().call(method, path, { as: "operator", body });
    const { api } = subject().platform;
    const app = await createApp({ api, token: subject().tokens.operator, call } as never, "frail", frailApp("one"));
    for (const version of ["one", "two"] as const) {
      await app.commit(frailApp(version));
      const pushed = await app.push();
      assert.equal(pushed.exitCode, 0, pushed.stderr);
    }
    const refused = await subject().expect(502, "POST", "/v1/projects/frail/rollback");
    assert.equal(refused.body.code, "previous_unhealthy");
    assert.equal((await subject().visit("frail.localhost")).body, "frail two");
  });

  it("No SQL, path, stack or address ever appears in a body", async () => {
    for (const [method, path, given] of wrong) {
      const { text } = await subject().call(method, path, given);
      assert.doesNotMatch(text, /select |insert |at \w+ \(|node:|\/src\/|127\.0\.0\.1/i, `${method} ${path}`);
    }
  });
}

type Wrong = readonly [method: string, path: string, given?: Parameters<Subject["call"]>[2]];

const wrong: readonly Wrong[] = [
  ["GET", "/v1/me", { as: "nobody" }],
  ["GET", "/v1/me", { as: "berth_o_wrong" }],
  ["GET", "/v1/nothing"],
  ["PATCH", "/v1/projects"],
  ["POST", "/v1/projects", { body: {} }],
  ["POST", "/v1/projects", { body: { slug: "shop", name: "Again" } }],
  ["POST", "/v1/projects", { body: "[" }],
  ["POST", "/v1/projects", { body: { slug: "x", name: "x".repeat(300_000) } }],
  ["POST", "/v1/projects", { body: "x", headers: { "content-type": "text/plain" } }],
  ["GET", "/v1/projects/nothing"],
  ["GET", "/v1/orgs"],
  ["GET", "/v1/projects/shop/env", { as: "limited" }],
  ["PUT", "/v1/projects/shop/settings", { as: "member", body: {} }],
  ["GET", "/v1/projects/rows/database"],
  ["GET", "/v1/projects/shop/data/tables/public/nothing"],
  ["GET", "/v1/projects/shop/data/tables/public/item?sort=nothing"],
  ["GET", `/v1/projects/${"x".repeat(9000)}`],
];
