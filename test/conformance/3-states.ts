import assert from "node:assert/strict";
import { it } from "node:test";
import { createApp, nodeApp } from "../e2e/platform.ts";
import { eventually, type Subject } from "./subject.ts";

/** Part 3 of the specification. */
export function transitions(subject: () => Subject): void {
  it("An active project that is deleted without approval mode is soft-deleted: it stops serving, code, database and backups are kept", async () => {
    const before = (await subject().expect(200, "GET", "/v1/projects/shop")).body.active_deployment.id;
    const head = await subject().shop.remoteHead();
    const { body } = await subject().expect(200, "DELETE", "/v1/projects/shop");
    assert.equal(body.state, "deleted");
    await eventually("the project stops serving", async () => (await subject().visit("shop.localhost")).status === 503);
    assert.equal((await subject().expect(200, "GET", "/v1/projects/shop")).body.state, "deleted");
    assert.equal((await subject().expect(409, "GET", "/v1/projects/shop/env")).body.code, "project_deleted");
    const { templates } = (await subject().expect(200, "GET", "/v1/templates")).body;
    assert.ok(templates.every(({ files }: { files: unknown[] }) => files.length > 0));
    const listed = (await subject().expect(200, "GET", "/v1/projects")).body.projects;
    assert.ok(!listed.some(({ slug }: { slug: string }) => slug === "shop"));

    const restored = await subject().expect(200, "POST", "/v1/projects/shop/undelete");
    assert.deepEqual([restored.body.state, restored.body.active_deployment.id], ["active", before]);
    await eventually("the project serves again", async () => (await subject().visit("shop.localhost")).body === "two");
    assert.equal(await subject().shop.remoteHead(), head);
    const { body: rows } = await subject().expect(200, "GET", "/v1/projects/shop/data/tables/public/item?limit=1");
    assert.equal(rows.rows.length, 1);
  });

  it("Delete with a token in approval mode waits for human approval: an approval request is created; the call answers approval_required", async () => {
    const slug = await projectOf(subject(), "waits");
    const remove = () => subject().call("DELETE", `/v1/projects/${slug}`, { as: "careful" });
    const first = await remove();
    assert.deepEqual(
      [first.status, first.body.code, first.body.approval.status],
      [403, "approval_required", "pending"],
    );
    assert.equal((await remove()).body.approval.id, first.body.approval.id, "the same request is the same approval");
    assert.equal((await subject().expect(200, "GET", `/v1/projects/${slug}`)).body.state, "active");
    assert.equal(
      (await subject().expect(200, "GET", `/v1/approvals/${first.body.approval.id}`)).body.status,
      "pending",
    );
  });

  it("An approved delete runs once, by the identical request; then the approval is consumed", async () => {
    const slug = await projectOf(subject(), "approved");
    const remove = () => subject().call("DELETE", `/v1/projects/${slug}`, { as: "careful" });
    const id = await subject().decide("approved", remove);
    assert.equal((await subject().expect(200, "GET", `/v1/approvals/${id}`)).body.status, "approved");
    assert.equal((await subject().expect(200, "GET", `/v1/projects/${slug}`)).body.state, "active");
    const other = await subject().expect(403, "DELETE", "/v1/projects/waits", { as: "careful" });
    assert.equal(other.body.code, "approval_required", "another project's delete is another request");
    assert.equal((await remove()).status, 200);
    assert.equal((await subject().expect(200, "GET", `/v1/approvals/${id}`)).body.status, "consumed");
    await subject().expect(200, "POST", `/v1/projects/${slug}/undelete`);
    const again = await remove();
    assert.equal(again.body.code, "approval_required");
    assert.notEqual(again.body.approval.id, id);
  });

  it("A denied delete is not executed, and a repeated request is refused for a while", async () => {
    const slug = await projectOf(subject(), "denied");
    const remove = () => subject().call("DELETE", `/v1/projects/${slug}`, { as: "careful" });
    const id = await subject().decide("denied", remove);
    assert.equal((await subject().expect(200, "GET", `/v1/approvals/${id}`)).body.status, "denied");
    const refused = await remove();
    assert.deepEqual([refused.status, refused.body.code], [403, "approval_denied"]);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.equal((await subject().expect(200, "GET", `/v1/projects/${slug}`)).body.state, "active");
  });

  it("disable suspends an organization, enable restores it with the deployments it had", async () => {
    const given = { as: "operator", body: { slug: "paused", name: "Paused" } };
    const token: string = (await subject().expect(201, "POST", "/v1/orgs", given)).body.owner_token;
    const call = (method: string, path: string, body?: unknown) => subject().call(method, path, { as: token, body });
    const app = await createApp(
      { api: subject().platform.api, org: "paused", token, call } as never,
      "still",
      nodeApp("still here"),
    );
    const hostname = new URL((await subject().expect(200, "GET", "/v1/projects/still", { as: token })).body.url)
      .hostname;
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    const active = async () =>
      (await subject().expect(200, "GET", "/v1/projects/still", { as: token })).body.active_deployment.id;
    const before = await active();

    const suspended = await subject().expect(200, "POST", "/v1/orgs/paused/disable", { as: "operator" });
    assert.equal(suspended.body.state, "suspended");
    await eventually("its tokens are refused", async () => (await call("GET", "/v1/me")).body.code === "org_suspended");
    await eventually("its application stops", async () => (await subject().visit(hostname)).status === 503);
    assert.notEqual((await app.push()).exitCode, 0);

    const enabled = await subject().expect(200, "POST", "/v1/orgs/paused/enable", { as: "operator" });
    assert.equal(enabled.body.state, "active");
    await eventually("its tokens work", async () => (await call("GET", "/v1/me")).status === 200);
    await eventually("its application serves", async () => (await subject().visit(hostname)).body === "still here");
    assert.equal(await active(), before);

    const changed = await subject().expect(200, "PATCH", "/v1/orgs/paused", {
      as: "operator",
      body: { max_projects: 3 },
    });
    assert.equal(changed.body.max_projects, 3);
    const more = { as: "operator", body: { replicas: 2 } };
    assert.equal((await subject().expect(200, "PUT", "/v1/orgs/paused/projects/still/scale", more)).body.replicas, 2);
    const limits = { as: "operator", body: { storage_bytes: 2 ** 30 } };
    const disk = await subject().expect(200, "PUT", "/v1/orgs/paused/projects/still/disk", limits);
    assert.equal(disk.body.storage.limit_bytes, 2 ** 30);
  });

  it("Rollback with a healthy previous deployment: the response carries status and deployment", async () => {
    const before = (await subject().expect(200, "GET", "/v1/projects/shop")).body.active_deployment.id;
    const { body } = await subject().expect(200, "POST", "/v1/projects/shop/rollback");
    assert.equal(body.status, "rolled_back");
    assert.equal(body.deployment.status, "active");
    const { deployments } = (await subject().expect(200, "GET", "/v1/projects/shop/deployments")).body;
    const first = deployments.find(({ number }: { number: number }) => number === 1);
    assert.deepEqual([body.deployment.rolled_back_from, body.deployment.image_ref], [before, first.image_ref]);
    assert.equal((await subject().visit("shop.localhost")).body, "one");
  });
}

async function projectOf(subject: Subject, slug: string): Promise<string> {
  await subject.expect(201, "POST", "/v1/projects", { as: "operator", body: { slug, name: slug } });
  return slug;
}
