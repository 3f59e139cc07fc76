import assert from "node:assert/strict";
import { it } from "node:test";
import { eventually, type Json, type Subject } from "./subject.ts";

/** Part 8 of the specification. */
export function limits(subject: () => Subject): void {
  it("Projects per organization: 10 unless max_projects says otherwise, also when many are created at once", async () => {
    const made = await subject().expect(201, "POST", "/v1/orgs", {
      as: "operator",
      body: { slug: "full", name: "Full" },
    });
    const as: string = made.body.owner_token;
    const create = (index: number) =>
      subject().call("POST", "/v1/projects", { as, body: { slug: `p${index}`, name: "P" } });
    const answers = await Promise.all(Array.from({ length: 25 }, (_, index) => create(index)));
    assert.equal(answers.filter(({ status }) => status === 201).length, 10);
    assert.ok(answers.every(({ status, body }) => status === 201 || body.code === "project_limit_reached"));
    const larger = { as: "operator", body: { slug: "larger", name: "Larger", max_projects: 11 } };
    assert.equal((await subject().expect(201, "POST", "/v1/orgs", larger)).body.max_projects, 11);
  });

  it("Deployments listed: up to 100; backups listed: the most recent 100", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/capabilities");
    assert.equal(body.limits.deployments_listed, 100);
    assert.ok((await subject().expect(200, "GET", "/v1/projects/shop/deployments")).body.deployments.length <= 100);
    assert.ok((await subject().expect(200, "GET", "/v1/projects/shop/backups")).body.backups.length <= 100);
  });

  it("Replicas: 1 to 8", async () => {
    for (const replicas of [0, 9, -1, 1.5, "2", null])
      await subject().expect(400, "PUT", "/v1/projects/shop/scale", { as: "operator", body: { replicas } });
    for (const replicas of [8, 1])
      assert.equal(
        (await subject().expect(200, "PUT", "/v1/projects/fields/scale", { as: "operator", body: { replicas } })).body
          .replicas,
        replicas,
      );
  });

  it("Log lines: 1 to 5000", async () => {
    for (const limit of ["0", "5001", "-1", "1.5", "many", ""])
      await subject().expect(400, "GET", `/v1/projects/shop/logs?limit=${limit}`);
    assert.equal((await subject().expect(200, "GET", "/v1/projects/shop/logs?limit=1")).body.lines.length, 1);
    await subject().expect(200, "GET", "/v1/projects/shop/logs?limit=5000");
    await subject().expect(400, "GET", "/v1/projects/shop/logs?source=both");
    for (const range of ["since=yesterday", "until=12", "since=1h&source=build", "until=1h&follow=true"])
      await subject().expect(400, "GET", `/v1/projects/shop/logs?${range}`);
  });

  it("Cron schedule: five fields, in UTC; the path starts with a slash", async () => {
    const put = (schedule: string, path = "/") =>
      subject().call("PUT", "/v1/projects/fields/cron/limits", { body: { schedule, path } });
    for (const schedule of [
      "* * * *",
      "* * * * * *",
      "60 * * * *",
      "* 24 * * *",
      "* * 0 * *",
      "* * * 13 *",
      "@daily",
      "* * * * mon",
      "",
    ])
      assert.equal((await put(schedule)).status, 400, schedule);
    for (const path of ["x", "", "//other.example", "/\\other", "/a b", `/${"x".repeat(512)}`])
      assert.equal((await put("* * * * *", path)).status, 400, path);
    for (const schedule of ["*/15 0-6,22 1,15 * 1-5", "59 23 31 12 7", "0 0 29 2 *"]) {
      const answer = await put(schedule);
      assert.ok(answer.status < 300, answer.text);
      const next = answer.body.next_run_at;
      if (schedule.startsWith("59")) assert.match(next, /T23:59:00\.000Z$/);
    }
    await subject().expect(204, "DELETE", "/v1/projects/fields/cron/limits");
  });

  it("Metrics range: 1h, 24h, 7d", async () => {
    for (const range of ["30d", "1H", "60", ""])
      await subject().expect(400, "GET", `/v1/projects/shop/metrics?range=${range}`);
    assert.equal((await subject().expect(200, "GET", "/v1/projects/shop/metrics")).body.range, "1h");
  });

  it("Table browser: limit 1 to 500, offset from 0, dir asc or desc", async () => {
    const path = "/v1/projects/shop/data/tables/public/item";
    for (const query of ["limit=0", "limit=501", "offset=-1", "dir=up", "sort=nothing"])
      await subject().expect(400, "GET", `${path}?${query}`);
    await subject().expect(200, "GET", `${path}?limit=500&offset=0&dir=desc`);
  });

  it("Request sizes: bodies, depth, URLs", async () => {
    const large = { slug: "large", name: "x".repeat(256 * 1024) };
    assert.equal((await subject().expect(413, "POST", "/v1/projects", { body: large })).body.code, "payload_too_large");
    const deep = `${'{"name":'.repeat(40)}1${"}".repeat(40)}`;
    await subject().expect(400, "POST", "/v1/projects", { body: deep });
    await subject().expect(413, "GET", `/v1/projects?x=${"y".repeat(8192)}`);
    await subject().expect(400, "PUT", "/v1/projects/fields/env/LARGE", { body: { value: "x".repeat(32 * 1024 + 1) } });
    await subject().expect(204, "PUT", "/v1/projects/fields/env/LARGE", { body: { value: "x".repeat(32 * 1024) } });
    await subject().expect(204, "PUT", "/v1/projects/fields/env/LARGE_TOO", { body: { value: "x".repeat(31 * 1024) } });
    const refused = await subject().expect(413, "PUT", "/v1/projects/fields/env/LARGE_AS_WELL", {
      body: { value: "x".repeat(8 * 1024) },
    });
    assert.equal(refused.body.code, "variables_too_large");
  });

  it("Every response has rate limit headers", async () => {
    const { headers } = await subject().expect(200, "GET", "/v1/me");
    for (const name of ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"])
      assert.match(headers.get(name) ?? "", /^\d+$/, name);
  });

  it("A repeated write with an Idempotency-Key runs once, and a write with dry_run changes nothing", async () => {
    const given = { headers: { "idempotency-key": "conformance-1" }, body: { name: "once" } };
    const create = () => subject().call("POST", "/v1/api-tokens", given);
    const [first, second] = [await create(), await create()];
    assert.deepEqual([first.status, second.status, second.body.id], [201, 201, first.body.id]);
    assert.equal(second.headers.get("idempotency-replayed"), "true");
    const other = await subject().expect(422, "POST", "/v1/api-tokens", { ...given, body: { name: "other" } });
    assert.equal(other.body.code, "idempotency_mismatch");
    const dryRunResult = await subject().expect(200, "DELETE", "/v1/projects/shop?dry_run=true");
    assert.deepEqual(
      [dryRunResult.body.dry_run, dryRunResult.body.would_answer, dryRunResult.body.needs_approval],
      [true, 200, false],
    );
    assert.equal((await subject().expect(200, "GET", "/v1/projects/shop")).body.state, "active");
    await subject().expect(204, "DELETE", `/v1/api-tokens/${first.body.id}`);
  });

  it("At most 5 approval requests of a token and 50 of an organization are pending", async () => {
    const made = await subject().expect(201, "POST", "/v1/orgs", {
      as: "operator",
      body: { slug: "waiting", name: "Waiting" },
    });
    const as: string = made.body.owner_token;
    const tokens: Json[] = [];
    for (let index = 0; index < 11; index += 1) {
      const careful = { name: `careful ${index}`, approval_mode: true };
      tokens.push((await subject().expect(201, "POST", "/v1/api-tokens", { as, body: careful })).body);
    }
    const ask = (token: Json, index: number) =>
      subject().call("POST", "/v1/api-tokens", { as: token.token, body: { name: `n${index}` } });
    for (const [of, token] of tokens.entries())
      for (let index = 0; index < (of < 10 ? 6 : 1); index += 1) {
        const { status, body } = await ask(token, index);
        assert.deepEqual(
          [status, body.code],
          of < 10 && index < 5 ? [403, "approval_required"] : [429, "rate_limited"],
        );
      }
    for (const { id } of tokens) await subject().expect(204, "DELETE", `/v1/api-tokens/${id}`, { as });
    await eventually("the approvals expired with their tokens", async () => {
      const { approvals } = (await subject().expect(200, "GET", "/v1/approvals?status=expired", { as })).body;
      return approvals.length === 50;
    });
  });
}
