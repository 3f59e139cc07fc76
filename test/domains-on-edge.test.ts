import assert from "node:assert/strict";
import { createServer, request, type IncomingMessage, type Server } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createDnsResolver } from "../src/adapters/dns-resolver/dns-resolver.ts";
import { checkDueDomains } from "../src/features/domains/domains.ts";
import { deleteExpiredNames } from "../src/features/projects/projects.ts";
import type { Edge } from "../src/ports/edge.ts";
import { edgeTask } from "../src/reconcile/edge/edge-task.ts";
import type { Task, Platform } from "../src/reconcile/platform.ts";
import { startDnsServer, type TestDnsServer } from "./support/dns-server.ts";
import { createTestEdge } from "./support/edges.ts";
import { readyReplica, testBuild, testDeployment, testProject } from "./support/fixtures.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "./support/test-platform.ts";
import { platformBeside } from "./support/platform-double.ts";

let dns: TestDnsServer;
let api: TestApi;
let org: TestOrganization;
let edge: Edge;
let edges: Task;
let app: Server;
let platform: Platform;
let folder: string;
let slug: string;
const hostname = "shop.example.com";

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ ports: { dns: createDnsResolver({ servers: [dns.address], timeoutMs: 5000 }) } });
  org = await testOrganization(api.database.db, "home");
  folder = await mkdtemp(join(tmpdir(), "berth-domains-"));
  edge = createTestEdge({ stateDir: folder });
  app = createServer((incoming, response) => response.end(`the shop, for ${incoming.headers.host}`));
  await new Promise<void>((done) => app.listen(0, "127.0.0.1", done));
  await deployedProject();
  platform = platformBeside(api, { ports: { edge } });
  edges = edgeTask(platform);
});
after(async () => {
  await edge.stop(0);
  await api.close();
  await dns.close();
  app.close();
  await rm(folder, { recursive: true, force: true });
});

/** Creates a project whose only replica is the application above. */
async function deployedProject(): Promise<void> {
  const project = await testProject(api.platform, org);
  slug = project.slug;
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const address = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
  await readyReplica(api.platform.db, { org_id: org.id, deployment_id: id, address });
}

/** Returns the edge's response for a hostname after the edge has applied all rows. */
async function visit(host: string): Promise<string> {
  await edges.run(new AbortController().signal);
  const { listen } = await edge.observe();
  const port = Number(listen?.split(":").at(-1));
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, headers: { host }, agent: false }, (response) => {
      let body = "";
      response.on("data", (chunk) => (body += String(chunk)));
      response.on("end", () => resolve(answerOf(response, body)));
    });
    asked.on("error", reject).end();
  });
}

function answerOf({ statusCode, headers }: IncomingMessage, body: string): string {
  if (statusCode === 200) return body;
  return headers.location === undefined ? `${statusCode}` : `${statusCode} to ${headers.location}`;
}

const call = (method: string, path: string, body?: unknown) =>
  api.call(method, `/v1/projects/${slug}${path}`, { token: org.owner, ...(body === undefined ? {} : { body }) });

test("a hostname is served from its verification until it is detached or its project is deleted", async () => {
  assert.equal((await call("POST", "/domains", { hostname })).status, 201);
  assert.equal(await visit(hostname), "404", "the hostname is attached, but its records do not point here");
  dns.set(hostname, { type: "A", value: "192.0.2.1" });
  await api.platform.db
    .updateTable("domain")
    .set({ next_check_at: new Date(0) })
    .execute();
  await checkDueDomains(platform, 10);
  assert.equal(await visit(hostname), `the shop, for ${hostname}`);
  assert.equal(await visit("SHOP.example.com."), "the shop, for SHOP.example.com.");
  assert.equal(await visit("other.example.com"), "404");
  await call("DELETE", "");
  assert.equal(await visit(hostname), "503", "a deleted project is not served");
  await call("POST", "/undelete");
  assert.equal(await visit(hostname), `the shop, for ${hostname}`);
  assert.equal((await call("DELETE", `/domains/${hostname}`)).status, 204);
  assert.equal(await visit(hostname), "404");
});

test("a name redirects once the other name is served, and serves the application again when that is detached", async () => {
  const www = `www.${hostname}`;
  dns.set(www, { type: "A", value: "192.0.2.1" });
  dns.set(hostname);
  await call("POST", "/domains", { hostname });
  await call("POST", "/domains", { hostname: www, redirect_to: hostname });
  assert.equal(await visit(www), `the shop, for ${www}`, "the other name's records do not point here yet");
  dns.set(hostname, { type: "A", value: "192.0.2.1" });
  await api.platform.db
    .updateTable("domain")
    .set({ next_check_at: new Date(0) })
    .execute();
  await checkDueDomains(platform, 10);
  assert.equal(await visit(www), `308 to http://${hostname}/`);
  platform.httpsNames.set([www]);
  assert.equal(await visit(www), `the shop, for ${www}`, "the other name has no certificate, and this edge no HTTPS");
  platform.httpsNames.set([www, hostname]);
  assert.equal(await visit(www), `308 to https://${hostname}/`);
  platform.httpsNames.set([]);
  await call("DELETE", `/domains/${hostname}`);
  assert.equal(await visit(www), `the shop, for ${www}`);
});

test("a renamed project is served under both hostnames until the old one expires", async () => {
  const present = async () => new URL((await call("GET", "")).body["url"] as string).hostname;
  const earlier = await present();
  assert.equal(await visit(earlier), `the shop, for ${earlier}`);
  assert.equal((await call("POST", "/rename", { slug: "shop" })).status, 200);
  slug = "shop";
  for (const name of [earlier, await present()]) assert.equal(await visit(name), `the shop, for ${name}`);
  await api.platform.db
    .updateTable("earlier_name")
    .set({ expires_at: new Date(0) })
    .execute();
  await deleteExpiredNames(api.platform.db);
  assert.equal(await visit(earlier), "404");
  assert.equal(await visit(await present()), `the shop, for ${await present()}`);
});
