import assert from "node:assert/strict";
import { it } from "node:test";
import { shopApp } from "./shop-app.ts";
import { address, eventually, hostnames, type Json, type Subject } from "./subject.ts";

const mask = "••••••••";
export const publicKey =
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsABgH5C9okWi0dh2l9GKJl someone@laptop";

/** Part 2 of the specification. */
export function fields(subject: () => Subject): void {
  it("Project: slug and name are supplied on create; port and health_path are settings, null resets them", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/projects", {
      body: { slug: "fields", name: "The fields" },
    });
    assert.deepEqual([body.slug, body.name, body.port, body.health_path], ["fields", "The fields", null, null]);
    const set = { body: { port: 5000, health_path: "/healthz" } };
    const changed = await subject().expect(200, "PUT", "/v1/projects/fields/settings", set);
    assert.deepEqual([changed.body.port, changed.body.health_path], [5000, "/healthz"]);
    const one = await subject().expect(200, "PUT", "/v1/projects/fields/settings", { body: { port: null } });
    assert.deepEqual([one.body.port, one.body.health_path], [null, "/healthz"]);
    const both = await subject().expect(200, "PUT", "/v1/projects/fields/settings", { body: { health_path: null } });
    assert.deepEqual([both.body.port, both.body.health_path], [null, null]);
  });

  it("Creating a project also creates its git repository", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects/fields");
    assert.match(body.git.ssh, /^ssh:\/\/git@.+\/main\/fields\.git$/);
    const headers = { authorization: `Basic ${Buffer.from(`berth:${subject().tokens.owner}`).toString("base64")}` };
    const refs = await fetch(`${subject().platform.api}/git/main/fields.git/info/refs?service=git-upload-pack`, {
      headers,
    });
    assert.equal(refs.status, 200);
    assert.match(await refs.text(), /^001e# service=git-upload-pack\n/);
  });

  it("Settings apply from the next deploy", async () => {
    const deployment = async () =>
      (await subject().expect(200, "GET", "/v1/projects/shop")).body.active_deployment.number;
    const before = await deployment();
    await subject().expect(200, "PUT", "/v1/projects/shop/settings", { body: { health_path: "/fail" } });
    assert.equal(await deployment(), before);
    await subject().shop.commit(shopApp("unhealthy"));
    const pushed = await subject().shop.push();
    assert.notEqual(pushed.exitCode, 0, "the new path answers 500, so the deploy fails");
    assert.equal((await subject().visit("shop.localhost")).body, "two");
    await subject().expect(200, "PUT", "/v1/projects/shop/settings", { body: { health_path: null } });
  });

  it("Deployment rows have all their fields", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/deployments");
    const rows = body.deployments as Json[];
    for (const row of rows) {
      for (const field of deploymentFields) assert.ok(field in row, field);
      assert.match(row.id, /^dep_/);
      assert.match(row.build_id, /^bld_/);
      assert.match(row.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
    const [failed, active, retired] = rows;
    assert.deepEqual([failed.status, active.status, retired.status], ["failed", "active", "retired"]);
    for (const { image_bytes } of rows) assert.ok(image_bytes > 100, `an image has ${image_bytes} bytes`);
    assert.ok(active.activated_at !== null && retired.retired_at !== null && active.rolled_back_from === null);
    assert.deepEqual(
      rows.map(({ number }) => number),
      [3, 2, 1],
    );
  });

  it("A build has an id, and the log of a build is readable by build id", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/builds");
    const [build] = body.builds;
    assert.match(build.id, /^bld_/);
    const log = await subject().expect(200, "GET", `/v1/builds/${build.id}/logs`);
    assert.match(log.body.log, /^-----> /m);
    assert.equal(log.body.complete, true);
  });

  it("Environment variables are listed as keys and a mask; values are never returned; system variables are flagged", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/env");
    const variables = new Map<string, Json>(body.variables.map((one: Json) => [one.key, one]));
    assert.deepEqual([variables.get("PLANTED").value, variables.get("PLANTED").system], [mask, false]);
    for (const key of ["PORT", "DATABASE_URL", "CRON_SECRET", "STORAGE_DIR"])
      assert.deepEqual([variables.get(key)?.value, variables.get(key)?.system], [mask, true], key);
  });

  it("Domain: hostname is given on attach; dns_status, ssl_status are returned on attach and list; instructions give the A record to create", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/domains", {
      body: { hostname: hostnames.wrong },
    });
    assert.equal(body.hostname, hostnames.wrong);
    assert.equal(body.dns_status, "mismatch");
    assert.ok(["pending", "issuing", "active", "failed"].includes(body.ssl_status));
    assert.deepEqual(
      [body.instructions.type, body.instructions.name, body.instructions.value],
      ["A", hostnames.wrong, address],
    );
    const listed = (await subject().expect(200, "GET", "/v1/projects/shop/domains")).body.domains as Json[];
    assert.ok(listed.some(({ hostname, dns_status }) => hostname === hostnames.wrong && dns_status === "mismatch"));
  });

  it("Cron job: name, schedule in UTC with five fields, path with a slash, enabled, last status and last run time in the list", async () => {
    const job = { schedule: "0 3 * * *", path: "/cron/nightly" };
    const { body } = await subject().expect(201, "PUT", "/v1/projects/shop/cron/nightly", { body: job });
    assert.deepEqual([body.name, body.schedule, body.path, body.enabled], ["nightly", job.schedule, job.path, true]);
    assert.match(body.next_run_at, /T03:00:00\.000Z$/);
    await subject().expect(201, "POST", "/v1/projects/shop/cron/nightly/run");
    const listed = await eventually("the run ended", async () => {
      const [first] = (await subject().expect(200, "GET", "/v1/projects/shop/cron")).body.jobs;
      return first.last_status === "succeeded" && first;
    });
    assert.ok(listed.last_run_at);
  });

  it("Database: one PostgreSQL database per project; credentials are never returned", async () => {
    const { body, text } = await subject().expect(200, "GET", "/v1/projects/shop/database");
    assert.deepEqual([body.engine, body.status], ["postgresql", "ready"]);
    assert.doesNotMatch(text, /password|postgres:\/\/|postgresql:\/\/|user/i);
    await subject().expect(200, "POST", "/v1/projects/shop/database");
  });

  it("API token: name, role, scopes, expires_in_days; roles are owner and member; bound to one organization", async () => {
    const wanted = { name: "fields", role: "owner", scopes: ["projects:read"], expires_in_days: 2 };
    const { body } = await subject().expect(201, "POST", "/v1/api-tokens", { body: wanted });
    assert.deepEqual([body.name, body.role, body.scopes], ["fields", "owner", ["projects:read"]]);
    const days = (Date.parse(body.expires_at) - Date.parse(body.created_at)) / 86_400_000;
    assert.ok(Math.abs(days - 2) < 0.01, `${days} days`);
    subject().secrets.add(body.token);
    assert.equal((await subject().expect(200, "GET", "/v1/me", { as: body.token })).body.organization.slug, "main");
    await subject().expect(400, "POST", "/v1/api-tokens", { body: { name: "x", role: "admin" } });
    await subject().expect(204, "DELETE", `/v1/api-tokens/${body.id}`);
    await subject().expect(401, "GET", "/v1/me", { as: body.token });
  });

  it("SSH key: name, public_key", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/ssh-keys", {
      body: { name: "laptop", public_key: publicKey },
    });
    assert.equal(body.name, "laptop");
    assert.ok(publicKey.startsWith(body.public_key.split(" ").slice(0, 2).join(" ")));
    const listed = (await subject().expect(200, "GET", "/v1/ssh-keys")).body.ssh_keys as Json[];
    assert.ok(listed.some(({ id }) => id === body.id));
    await subject().expect(204, "DELETE", `/v1/ssh-keys/${body.id}`);
  });

  it("Organization: slug, name, max_projects, which defaults to 10; creation returns an owner token, shown once", async () => {
    const given = { as: "operator", body: { slug: "shown-once", name: "Shown once" } };
    const { body } = await subject().expect(201, "POST", "/v1/orgs", given);
    assert.deepEqual([body.slug, body.name, body.max_projects], ["shown-once", "Shown once", 10]);
    assert.equal((await subject().expect(200, "GET", "/v1/me", { as: body.owner_token })).body.role, "owner");
    subject().secrets.add(body.owner_token);
    const listed = (await subject().expect(200, "GET", "/v1/orgs", { as: "operator" })).body.orgs as Json[];
    assert.ok(listed.some(({ slug }) => slug === "shown-once"));
  });

  it("Approval request: an id and a status; the decision link is never present in any API response", async () => {
    const id = await subject().decide("denied", () =>
      subject().call("DELETE", "/v1/projects/fields", { as: "careful" }),
    );
    assert.match(id, /^apr_/);
    // From here on every response is checked for the link's secret. These responses are the most likely to leak it.
    for (const path of [`/v1/approvals/${id}`, "/v1/approvals", "/v1/activity", "/v1/projects/fields/timeline"])
      await subject().expect(200, "GET", path);
    const { body } = await subject().expect(200, "GET", `/v1/approvals/${id}`);
    assert.equal(body.status, "denied");
    const { body: document } = await subject().expect(200, "GET", "/v1/openapi.json");
    const { enum: statuses } = document.components.schemas.Approval.properties.status;
    assert.deepEqual(statuses.toSorted(), ["approved", "consumed", "denied", "expired", "pending"]);
  });
}

const deploymentFields = [
  "id",
  "number",
  "status",
  "build_id",
  "image_ref",
  "image_bytes",
  "created_at",
  "activated_at",
  "retired_at",
  "rolled_back_from",
];
