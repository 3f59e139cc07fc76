import assert from "node:assert/strict";
import { it } from "node:test";
import { tarOf } from "../support/tar.ts";
import { shopApp } from "./shop-app.ts";
import { eventually, hostnames, type Json, type Subject } from "./subject.ts";

/** Rows about a project, its deployments, domains and cron jobs. */
export function projectRows(subject: () => Subject): void {
  it("POST /v1/projects creates project and its git repository and returns the project", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/projects", {
      as: "member",
      body: { slug: "rows", name: "Rows" },
    });
    assert.deepEqual([body.slug, body.state, body.active_deployment], ["rows", "active", null]);
    assert.equal(
      (await subject().expect(409, "POST", "/v1/projects", { body: { slug: "rows", name: "Rows" } })).body.code,
      "slug_taken",
    );
  });

  it("GET /v1/projects lists projects, GET /v1/projects/:slug shows one", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects");
    const one = await subject().expect(200, "GET", "/v1/projects/rows");
    assert.deepEqual(
      body.projects.find(({ slug }: Json) => slug === "rows"),
      one.body,
    );
  });

  it("PUT settings is for owners only; null resets a value", async () => {
    const given = { body: { port: 3000 } };
    assert.equal(
      (await subject().expect(403, "PUT", "/v1/projects/rows/settings", { as: "member", ...given })).body.code,
      "owner_only",
    );
    assert.equal((await subject().expect(200, "PUT", "/v1/projects/rows/settings", given)).body.port, 3000);
    assert.equal(
      (await subject().expect(200, "PUT", "/v1/projects/rows/settings", { body: { port: null } })).body.port,
      null,
    );
  });

  it("DELETE is a soft delete, POST undelete restores", async () => {
    assert.equal((await subject().expect(200, "DELETE", "/v1/projects/rows", { as: "member" })).body.state, "deleted");
    const hidden = (await subject().expect(200, "GET", "/v1/projects?deleted=true")).body.projects as Json[];
    assert.ok(hidden.some(({ slug }) => slug === "rows"));
    assert.equal(
      (await subject().expect(200, "POST", "/v1/projects/rows/undelete", { as: "member" })).body.state,
      "active",
    );
  });

  it("POST rename changes the slug, PUT maintenance shows a page to visitors; GET runtime is for platform admins", async () => {
    await subject().expect(201, "POST", "/v1/projects", { body: { slug: "earlier", name: "Earlier" } });
    const renamed = await subject().expect(200, "POST", "/v1/projects/earlier/rename", { body: { slug: "later" } });
    assert.equal(renamed.body.slug, "later");
    assert.equal((await subject().expect(200, "GET", "/v1/projects/earlier")).body.id, renamed.body.id);
    const page = { on: true, message: "Back at noon." };
    const { body } = await subject().expect(200, "PUT", "/v1/projects/later/maintenance", { as: "member", body: page });
    assert.equal(body.maintenance.message, page.message);
    const off = await subject().expect(200, "PUT", "/v1/projects/later/maintenance", { body: { on: false } });
    assert.equal(off.body.maintenance, null);
    const { organization } = (await subject().expect(200, "GET", "/v1/me")).body;
    const path = `/v1/orgs/${organization.slug}/projects/later/runtime`;
    assert.equal((await subject().expect(403, "GET", path)).body.code, "operator_only");
    assert.ok((await subject().expect(200, "GET", path, { as: "operator" })).body.available.length > 0);
  });

  it("GET, PUT and PATCH source, and the schema of berth.json", async () => {
    const source = "/v1/projects/shop/source";
    assert.ok((await subject().expect(200, "GET", source)).body.files.length > 0);
    const files = [{ path: "note.txt", text: "hello" }];
    await subject().expect(200, "PATCH", `${source}?dry_run=true`, { body: { files } });
    await subject().expect(200, "PUT", `${source}?dry_run=true`);
    const { body } = await subject().expect(200, "GET", "/v1/berth.schema.json", { as: "nobody" });
    assert.ok("crons" in body.properties);
  });

  it("POST and PUT plan return what a deploy would do, and create no build", async () => {
    const path = "/v1/projects/shop/plan";
    const before = (await subject().expect(200, "GET", "/v1/projects/shop/builds")).body.builds.length;
    const planned = (await subject().expect(200, "POST", path, { body: {} })).body;
    assert.equal(planned.outcome, "deploys");
    assert.ok(planned.processes.some(({ type }: { type: string }) => type === "web"));
    const files = [{ path: "berth.json", text: '{"health_path": "/up"}' }];
    assert.equal((await subject().expect(200, "POST", path, { body: { files } })).body.health_path, "/up");
    // The archive is ASCII only, so latin1 does not change its bytes.
    const archive = tarOf({ path: "index.html", text: "hello" }).toString("latin1");
    const headers = { "content-type": "application/x-tar" };
    const sent = (await subject().expect(200, "PUT", path, { body: archive, headers })).body;
    assert.deepEqual([sent.commit, sent.build.kind], [null, "static"]);
    assert.equal((await subject().expect(200, "GET", "/v1/projects/shop/builds")).body.builds.length, before);
  });

  it("GET deployments, GET builds, GET builds/:id and its logs", async () => {
    const { builds } = (await subject().expect(200, "GET", "/v1/projects/shop/builds")).body;
    const { deployments } = (await subject().expect(200, "GET", "/v1/projects/shop/deployments")).body;
    assert.ok(deployments.length >= 3 && builds.length >= 3);
    const build = await subject().expect(200, "GET", `/v1/builds/${builds[0].id}`);
    const { deployment, ...shown } = build.body;
    assert.deepEqual(shown, builds[0]);
    const made = deployments.find((one: Json) => one.build_id === builds[0].id && one.number === deployment.number);
    assert.deepEqual([made.status, made.failure], [deployment.status, deployment.failure]);
    const failed = builds.find(
      ({ id }: Json) => id === deployments.find(({ status }: Json) => status === "failed").build_id,
    );
    assert.match((await subject().expect(200, "GET", `/v1/builds/${failed.id}/logs`)).body.log, /^ ! {5}/m);
  });

  it("POST previews gives a branch a URL of its own, GET lists it, DELETE removes it", async () => {
    await subject().expect(200, "PUT", "/v1/projects/shop/settings", { body: { previews: ["none-yet"] } });
    await subject().shop.commit(shopApp("two"));
    const stored = await subject().shop.push("feature/look");
    assert.equal(stored.exitCode, 0, stored.stderr);
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/previews", {
      as: "member",
      body: { branch: "feature/look" },
    });
    await eventually("the preview is live", async () => {
      const { previews } = (await subject().expect(200, "GET", "/v1/projects/shop/previews")).body;
      return previews[0].id === body.id && previews[0].state === "live";
    });
    assert.deepEqual([body.slug, body.branch], ["feature-look--shop", "feature/look"]);
    const at = "/v1/projects/shop/previews/feature-look--shop";
    assert.equal((await subject().expect(200, "PUT", `${at}/pin`, { as: "member" })).body.expires_at, null);
    assert.notEqual((await subject().expect(200, "DELETE", `${at}/pin`, { as: "member" })).body.expires_at, null);
    const comment = (await subject().expect(200, "GET", `${at}/comment`, { as: "member" })).body;
    assert.match(comment.text, /The preview of `feature\/look` is live[^]*feature-look--shop/);
    assert.deepEqual([comment.posted, comment.request, comment.problem], [false, null, null]);
    const promoted = (await subject().expect(201, "POST", `${at}/promote`, { as: "member" })).body;
    await eventually("the image of the preview serves the project", async () => {
      const { deployments } = (await subject().expect(200, "GET", "/v1/projects/shop/deployments")).body;
      return deployments[0].build_id === promoted.build_id && deployments[0].status === "active";
    });
    await subject().expect(204, "DELETE", "/v1/projects/shop/previews/feature%2Flook", { as: "member" });
    await eventually("the preview is gone", async () => {
      return (await subject().expect(200, "GET", "/v1/projects/shop/previews")).body.previews.length === 0;
    });
  });

  it("POST deployments builds and deploys again without a push", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/deployments", { body: {} });
    await eventually("the deployment is live", async () => {
      const [newest] = (await subject().expect(200, "GET", "/v1/projects/shop/deployments")).body.deployments;
      return newest.build_id === body.build_id && newest.status === "active";
    });
    assert.equal((await subject().visit("shop.localhost")).body, "two");
    const nothing = await subject().expect(409, "POST", "/v1/projects/rows/deployments", { body: {} });
    assert.equal(nothing.body.code, "nothing_to_deploy");
  });

  it("POST cancel cancels a running build, and the active deployment keeps serving", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/deployments", { body: {} });
    await subject().expect(200, "POST", `/v1/builds/${body.build_id}/cancel`);
    await eventually("the build is cancelled", async () => {
      const build = await subject().expect(200, "GET", `/v1/builds/${body.build_id}`);
      return build.body.status === "cancelled";
    });
    assert.equal((await subject().visit("shop.localhost")).body, "two");
  });

  it("GET disk shows use and limits; DELETE removes files from the storage folder", async () => {
    assert.equal((await subject().visit("shop.localhost", "/keep")).body, "kept");
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/disk");
    assert.deepEqual([body.storage.access, body.database.access], ["open", "open"]);
    const { body: kept } = await subject().expect(200, "GET", "/v1/projects/shop/disk/files", { as: "member" });
    assert.ok(kept.files.some(({ name, kind }: { name: string; kind: string }) => name === "kept" && kind === "file"));
    const { body: read } = await subject().expect(200, "GET", "/v1/projects/shop/disk/file?path=kept");
    assert.deepEqual([Buffer.from(read.base64, "base64").toString(), read.next_offset], ["kept", null]);
    await subject().expect(404, "GET", "/v1/projects/shop/disk/files?path=kept");
    await subject().expect(400, "GET", "/v1/projects/shop/disk/file?path=../kept");
    const put = "/v1/projects/shop/disk/file?path=put/note&size_bytes=5";
    const file = { body: "hello", headers: { "content-type": "application/octet-stream" } };
    const { body: written } = await subject().expect(201, "PUT", put, file);
    assert.deepEqual(written, { path: "put/note", size_bytes: 5, kept: null, kept_folder: null });
    assert.match((await subject().expect(409, "PUT", put, file)).body.error, /put\/note is there, a file of 5 B/);
    const { body: instead } = await subject().expect(201, "PUT", `${put}&replace=true`, file);
    assert.equal(instead.kept, `.restored/${instead.kept_folder}/put/note`);
    const folder = "/v1/projects/shop/disk/file?path=put&size_bytes=5&replace=true";
    assert.match((await subject().expect(409, "PUT", folder, file)).body.hint, /No file replaces a folder/);
    for (const wrong of [put.replace("=5", "=4"), put.replace("=5", "=6"), `${put}&sha256=${"0".repeat(64)}`])
      await subject().expect(400, "PUT", `${wrong}&replace=true`, file);
    const { body: there } = await subject().expect(200, "GET", "/v1/projects/shop/disk/file?path=put/note");
    assert.equal(Buffer.from(there.base64, "base64").toString(), "hello");
    const { body: asked } = await subject().expect(201, "POST", "/v1/projects/shop/backups", {
      body: { content: "files" },
    });
    await eventually("the files are backed up", async () => {
      return (await subject().expect(200, "GET", `/v1/backups/${asked.id}`)).body.status === "completed";
    });
    const within = `backup=${asked.id}`;
    const { body: then } = await subject().expect(200, "GET", `/v1/projects/shop/disk/files?${within}`, {
      as: "member",
    });
    assert.ok(
      then.files.some(
        ({ name, size_bytes }: { name: string; size_bytes: number }) => name === "kept" && size_bytes === 4,
      ),
    );
    const { body: part } = await subject().expect(
      200,
      "GET",
      `/v1/projects/shop/disk/file?path=kept&offset=2&${within}`,
    );
    assert.deepEqual([Buffer.from(part.base64, "base64").toString(), part.next_offset], ["pt", null]);
    await subject().expect(404, "GET", `/v1/projects/shop/disk/file?path=none&${within}`);
    await subject().expect(404, "GET", "/v1/projects/shop/disk/files?backup=bak_none");
    const restore = { as: "member", body: { path: "kept", backup_id: asked.id } };
    const { body: refused } = await subject().expect(409, "POST", "/v1/projects/shop/restore/path", restore);
    assert.match(refused.error, /kept is there, a file of 4 B/);
    const replacing = { as: "member", body: { ...restore.body, replace: true } };
    const { body: replaced } = await subject().expect(201, "POST", "/v1/projects/shop/restore/path", replacing);
    assert.equal(replaced.kept, `.restored/${replaced.kept_folder}/kept`);
    const removed = { as: "member", body: { path: "kept" } };
    await subject().expect(200, "DELETE", "/v1/projects/shop/disk/storage", removed);
    await subject().expect(404, "DELETE", "/v1/projects/shop/disk/storage", removed);
  });

  it("POST rollback returns {status, deployment}; 409 when there is nothing to roll back to", async () => {
    assert.equal((await subject().expect(409, "POST", "/v1/projects/rows/rollback")).body.code, "nothing_to_roll_back");
    const { body } = await subject().expect(200, "POST", "/v1/projects/shop/rollback", { as: "member" });
    assert.deepEqual(Object.keys(body).toSorted(), [
      "changed_variables",
      "deployment",
      "from",
      "newer_branch",
      "status",
      "to",
    ]);
    await subject().shop.commit(shopApp("two"));
    const pushed = await subject().shop.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    const { body: between } = await subject().expect(200, "GET", "/v1/projects/shop/compare");
    assert.ok(between.from.number < between.to.number, JSON.stringify(between));
    const { body: lines } = await subject().expect(200, "GET", "/v1/projects/shop/compare/lines");
    assert.deepEqual(Object.keys(lines).toSorted(), ["commits", "complete", "files"]);
    assert.deepEqual([lines.commits.at(0)?.commit, lines.complete], [between.to.commit, true]);
    const path = `/v1/projects/shop/deployments/${between.to.number}/rehearsal`;
    const { body: rehearsed } = await subject().expect(200, "GET", path);
    assert.deepEqual(Object.keys(rehearsed), ["rehearsal"]);
    const { body: asked } = await subject().expect(201, "POST", "/v1/projects/shop/rehearsals", { body: {} });
    await eventually("the rehearsal has ended", async () => {
      const { body: list } = await subject().expect(200, "GET", "/v1/projects/shop/deployments");
      const found = (list.deployments as Json[]).find(({ build_id }) => build_id === asked.build_id);
      return found?.["status"] === "superseded" && found["rehearse_only"] === true;
    });
  });

  it("PUT scale is for platform admins only; the set number of replicas runs", async () => {
    assert.equal(
      (await subject().expect(403, "PUT", "/v1/projects/shop/scale", { body: { replicas: 2 } })).body.code,
      "operator_only",
    );
    const { body } = await subject().expect(200, "PUT", "/v1/projects/shop/scale", {
      as: "operator",
      body: { replicas: 2 },
    });
    assert.equal(body.replicas, 2);
    await eventually("two replicas are ready", async () => {
      const { replicas } = (await subject().expect(200, "GET", "/v1/projects/shop/metrics")).body;
      return replicas.filter(({ ready }: Json) => ready).length === 2;
    });
    await subject().expect(200, "PUT", "/v1/projects/shop/scale", { as: "operator", body: { replicas: 1 } });
  });

  it("PUT env answers 204 and the application gets the value; DELETE removes the variable", async () => {
    const { headers, text } = await subject().expect(204, "PUT", "/v1/projects/shop/env/GREETING", {
      as: "member",
      body: { value: "hello there" },
    });
    assert.equal(text, "");
    assert.equal(headers.get("content-type"), null);
    await eventually(
      "the application has the variable",
      async () => (await subject().visit("shop.localhost", "/greeting")).body === "hello there",
    );
    await subject().expect(204, "DELETE", "/v1/projects/shop/env/GREETING", { as: "member" });
    const { variables } = (await subject().expect(200, "GET", "/v1/projects/shop/env")).body;
    assert.ok(!variables.some(({ key }: Json) => key === "GREETING"));
    await subject().expect(404, "DELETE", "/v1/projects/shop/env/GREETING");
    await eventually(
      "the application lost the variable",
      async () => (await subject().visit("shop.localhost", "/greeting")).body === "none",
    );
  });

  it("POST domains answers 201 with dns_status, ssl_status and instructions; a verified name is served; DELETE detaches it", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/domains", {
      body: { hostname: hostnames.ready },
    });
    assert.equal(body.dns_status, "ok");
    await eventually("the hostname is served", async () => (await subject().visit(hostnames.ready)).body === "two");
    const taken = await subject().expect(409, "POST", "/v1/projects/rows/domains", {
      body: { hostname: hostnames.ready },
    });
    assert.equal(taken.body.code, "hostname_taken");
    await subject().expect(204, "DELETE", `/v1/projects/shop/domains/${hostnames.ready}`);
    await eventually(
      "the hostname is no longer served",
      async () => (await subject().visit(hostnames.ready)).status === 404,
    );
  });

  it("GET domains lists with refreshed status", async () => {
    await eventually("the later records are found", async () => {
      const { domains } = (await subject().expect(200, "GET", "/v1/projects/shop/domains")).body;
      return domains.some(({ hostname, dns_status }: Json) => hostname === hostnames.late && dns_status === "ok");
    });
    await eventually("the hostname is served", async () => (await subject().visit(hostnames.late)).body === "two");
  });

  it("PUT cron creates or updates the job; the application is called with its secret", async () => {
    const job = { schedule: "30 4 1 * *", path: "/cron/monthly" };
    assert.equal(
      (await subject().expect(201, "PUT", "/v1/projects/shop/cron/monthly", { body: job })).body.enabled,
      true,
    );
    await subject().expect(409, "POST", "/v1/projects/shop/cron/monthly/restore");
    const off = await subject().expect(200, "PUT", "/v1/projects/shop/cron/monthly", {
      body: { ...job, enabled: false },
    });
    assert.deepEqual([off.body.enabled, off.body.next_run_at], [false, null]);
    const restored = await subject().expect(200, "POST", "/v1/projects/shop/cron/monthly/restore");
    assert.deepEqual([restored.body.enabled, restored.body.schedule], [true, job.schedule]);
    const { body } = await subject().expect(201, "POST", "/v1/projects/shop/cron/monthly/run");
    assert.match(body.id, /^run_/);
    const run = await eventually("the run ends", async () => {
      const { runs } = (await subject().expect(200, "GET", "/v1/projects/shop/cron/monthly/runs")).body;
      return runs.find(({ id, status }: Json) => id === body.id && status !== "running");
    });
    assert.deepEqual(
      [run.status, run.http_status, run.response_excerpt],
      ["succeeded", 200, "GET shop.localhost true 30 4 1 * *"],
    );
    await subject().expect(204, "DELETE", "/v1/projects/shop/cron/monthly");
    await subject().expect(404, "GET", "/v1/projects/shop/cron/monthly/runs");
  });

  it("POST cron/import takes the cron list of a common hosting configuration file and returns {imported}", async () => {
    const crons = [
      { path: "/cron/a", schedule: "0 10 * * *" },
      { path: "/cron/b", schedule: "*/5 * * * 1-5" },
    ];
    assert.equal(
      (await subject().expect(200, "POST", "/v1/projects/rows/cron/import", { body: { crons } })).body.imported,
      2,
    );
    await subject().expect(200, "POST", "/v1/projects/rows/cron/import", { body: { crons } });
    const { jobs } = (await subject().expect(200, "GET", "/v1/projects/rows/cron")).body;
    assert.deepEqual(jobs.map(({ path }: Json) => path).toSorted(), ["/cron/a", "/cron/b"]);
    const wrong = { crons: [...crons, { path: "no-slash", schedule: "0 10 * * *" }] };
    await subject().expect(400, "POST", "/v1/projects/rows/cron/import", { body: wrong });
    assert.equal((await subject().expect(200, "GET", "/v1/projects/rows/cron")).body.jobs.length, 2, "all or nothing");
  });
}
