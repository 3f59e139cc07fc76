import { tarOf } from "../support/tar.ts";
import type { Things } from "../support/fixtures.ts";

/** What a row ought to allow, written down a second time and on purpose: a row that changes alone turns the matrix red. */
export interface Permission {
  readonly access: "public" | "member" | "owner" | "operator";
  readonly scope: string | null;
  /** Asked for beside it; each alone being away is refused as well. */
  readonly further_scopes?: readonly string[];
  readonly approval?: true;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: (things: Things) => string;
  /** A body that is right; none when the row takes none. */
  readonly body?: (things: Things) => unknown;
  /** What an allowed caller gets for the things of `testThings`. */
  readonly allowed: number;
  /** The path names the organization too, so operators of any organization reach the thing. */
  readonly everyOrganization?: true;
  /** What the path names; all but an organization is owned by one. */
  readonly names:
    | "project"
    | "build"
    | "key"
    | "token"
    | "backup"
    | "approval"
    | "organization"
    | "webhook"
    | "registry"
    | null;
}

const project = ({ project: { slug } }: Things) => `/v1/projects/${slug}`;
const inProject = (rest: string) => (things: Things) => `${project(things)}${rest}`;
const member = { access: "member" } as const;
const ofProject = { ...member, names: "project" } as const;
const ofWebhook = { access: "owner", names: "webhook", scope: "webhooks:write" } as const;
const readsWebhooks = { scope: "webhooks:read", method: "GET", allowed: 200 } as const;
const webhook =
  (rest = "") =>
  (things: Things) =>
    `/v1/webhooks/${things.webhook}${rest}`;
const ofNothing = { ...member, names: null } as const;
const operator = { ...ofNothing, access: "operator", scope: "platform:read", method: "GET", allowed: 200 } as const;

let counter = 0;
const fresh = () => `new-${(counter += 1)}-${process.pid}`;

/** By the row's name. */
export const permissions: Readonly<Record<string, Permission>> = {
  "self-description.capabilities": {
    ...ofNothing,
    access: "public",
    scope: null,
    method: "GET",
    path: () => "/v1/capabilities",
    allowed: 200,
  },
  "self-description.openapi": {
    ...ofNothing,
    access: "public",
    scope: null,
    method: "GET",
    path: () => "/v1/openapi.json",
    allowed: 200,
  },
  "self-description.berth-file": {
    ...ofNothing,
    access: "public",
    scope: null,
    method: "GET",
    path: () => "/v1/berth.schema.json",
    allowed: 200,
  },
  "me.get": { ...ofNothing, scope: null, method: "GET", path: () => "/v1/me", allowed: 200 },
  "projects.create": {
    ...ofNothing,
    scope: "projects:write",
    method: "POST",
    path: () => "/v1/projects",
    body: () => ({ slug: fresh(), name: "New" }),
    allowed: 201,
  },
  "projects.list": { ...ofNothing, scope: "projects:read", method: "GET", path: () => "/v1/projects", allowed: 200 },
  "projects.get": { ...ofProject, scope: "projects:read", method: "GET", path: project, allowed: 200 },
  "projects.settings": {
    ...ofProject,
    access: "owner",
    scope: "projects:write",
    method: "PUT",
    path: inProject("/settings"),
    body: () => ({ port: 3000 }),
    allowed: 200,
  },
  "projects.delete": {
    ...ofProject,
    scope: "projects:write",
    approval: true,
    method: "DELETE",
    path: project,
    allowed: 200,
  },
  "projects.undelete": {
    ...ofProject,
    scope: "projects:write",
    method: "POST",
    path: inProject("/undelete"),
    allowed: 409,
  },
  "deployments.list": {
    ...ofProject,
    scope: "deployments:read",
    method: "GET",
    path: inProject("/deployments"),
    allowed: 200,
  },
  "deployments.compare": {
    ...ofProject,
    scope: "deployments:read",
    further_scopes: ["env:read"],
    method: "GET",
    path: inProject("/compare"),
    allowed: 404,
  },
  "deployments.create": {
    ...ofProject,
    scope: "deployments:write",
    method: "POST",
    path: inProject("/deployments"),
    body: () => ({}),
    allowed: 409,
  },
  "deployments.rollback": {
    ...ofProject,
    scope: "deployments:write",
    method: "POST",
    path: inProject("/rollback"),
    allowed: 409,
  },
  "deployments.scale": {
    ...ofProject,
    access: "operator",
    scope: "deployments:write",
    method: "PUT",
    path: inProject("/scale"),
    body: () => ({ replicas: 2 }),
    allowed: 200,
  },
  "processes.list": {
    ...ofProject,
    scope: "deployments:read",
    method: "GET",
    path: inProject("/processes"),
    allowed: 200,
  },
  "processes.set": {
    ...ofProject,
    access: "operator",
    scope: "deployments:write",
    method: "PUT",
    path: inProject("/processes/worker"),
    body: () => ({ replicas: 2 }),
    allowed: 200,
  },
  "processes.restart": {
    ...ofProject,
    scope: "deployments:write",
    method: "POST",
    path: inProject("/restart"),
    body: () => ({}),
    allowed: 409,
  },
  "runs.list": { ...ofProject, scope: "deployments:read", method: "GET", path: inProject("/runs"), allowed: 200 },
  "runs.create": {
    ...ofProject,
    scope: "deployments:write",
    approval: true,
    method: "POST",
    path: inProject("/runs"),
    body: () => ({ command: "true", wait_seconds: 0 }),
    allowed: 409,
  },
  "runs.get": { ...ofProject, scope: "deployments:read", method: "GET", path: inProject("/runs/1"), allowed: 404 },
  "runs.terminal": {
    ...ofProject,
    scope: "deployments:write",
    method: "GET",
    path: inProject("/runs/1/terminal"),
    allowed: 404,
  },
  "runs.cancel": {
    ...ofProject,
    scope: "deployments:write",
    method: "POST",
    path: inProject("/runs/1/cancel"),
    allowed: 404,
  },
  "builds.list": { ...ofProject, scope: "deployments:read", method: "GET", path: inProject("/builds"), allowed: 200 },
  "builds.get": {
    ...member,
    names: "build",
    scope: "deployments:read",
    method: "GET",
    path: ({ build }) => `/v1/builds/${build}`,
    allowed: 200,
  },
  "builds.cancel": {
    ...member,
    names: "build",
    scope: "deployments:write",
    method: "POST",
    path: ({ build }) => `/v1/builds/${build}/cancel`,
    allowed: 409,
  },
  "builds.source": {
    ...ofProject,
    scope: "projects:read",
    method: "GET",
    path: inProject("/source"),
    allowed: 200,
  },
  "builds.upload": {
    ...ofProject,
    scope: "deployments:write",
    method: "PUT",
    path: inProject("/source"),
    body: () => tarOf({ path: "index.html", text: "hello" }),
    allowed: 201,
  },
  "builds.change": {
    ...ofProject,
    scope: "deployments:write",
    method: "PATCH",
    path: inProject("/source"),
    body: () => ({ files: [{ path: "index.html", text: "hello" }] }),
    allowed: 201,
  },
  "builds.logs": {
    ...member,
    names: "build",
    scope: "logs:read",
    method: "GET",
    path: ({ build }) => `/v1/builds/${build}/logs`,
    allowed: 200,
  },
  "env.list": { ...ofProject, scope: "env:read", method: "GET", path: inProject("/env"), allowed: 200 },
  "env.set": {
    ...ofProject,
    scope: "env:write",
    method: "PUT",
    path: inProject("/env/COLOUR"),
    body: () => ({ value: "blue" }),
    allowed: 204,
  },
  "env.delete": {
    ...ofProject,
    scope: "env:write",
    approval: true,
    method: "DELETE",
    path: inProject("/env/COLOUR"),
    allowed: 204,
  },
  "domains.attach": {
    ...ofProject,
    scope: "domains:write",
    method: "POST",
    path: inProject("/domains"),
    body: () => ({ hostname: `${fresh()}.test` }),
    allowed: 201,
  },
  "domains.list": { ...ofProject, scope: "domains:read", method: "GET", path: inProject("/domains"), allowed: 200 },
  "domains.detach": {
    ...ofProject,
    scope: "domains:write",
    approval: true,
    method: "DELETE",
    path: (things) => `${project(things)}/domains/${things.domain}`,
    allowed: 204,
  },
  "cron.list": { ...ofProject, scope: "cron:read", method: "GET", path: inProject("/cron"), allowed: 200 },
  "cron.set": {
    ...ofProject,
    scope: "cron:write",
    method: "PUT",
    path: inProject("/cron/hourly"),
    body: () => ({ schedule: "0 * * * *", path: "/hourly" }),
    allowed: 201,
  },
  "cron.import": {
    ...ofProject,
    scope: "cron:write",
    method: "POST",
    path: inProject("/cron/import"),
    body: () => ({ crons: [{ path: "/hourly", schedule: "0 * * * *" }] }),
    allowed: 200,
  },
  "cron.runs": { ...ofProject, scope: "cron:read", method: "GET", path: inProject("/cron/nightly/runs"), allowed: 200 },
  "cron.run": { ...ofProject, scope: "cron:write", method: "POST", path: inProject("/cron/nightly/run"), allowed: 201 },
  "cron.delete": {
    ...ofProject,
    scope: "cron:write",
    approval: true,
    method: "DELETE",
    path: inProject("/cron/nightly"),
    allowed: 204,
  },
  "database.get": { ...ofProject, scope: "database:read", method: "GET", path: inProject("/database"), allowed: 200 },
  "database.create": {
    ...ofProject,
    scope: "database:write",
    method: "POST",
    path: inProject("/database"),
    allowed: 200,
  },
  "database.connect": {
    ...ofProject,
    access: "owner",
    scope: "data:write",
    approval: true,
    method: "POST",
    path: inProject("/database/sessions"),
    body: () => ({}),
    allowed: 201,
  },
  "database.dump": {
    ...ofProject,
    access: "owner",
    scope: "data:write",
    method: "POST",
    path: inProject("/database/dump"),
    body: () => ({}),
    allowed: 201,
  },
  "database.import": {
    ...ofProject,
    access: "owner",
    scope: "data:write",
    approval: true,
    method: "POST",
    path: inProject("/database/import"),
    body: () => ({}),
    allowed: 201,
  },
  "database.tunnel": {
    ...ofProject,
    access: "owner",
    scope: "data:write",
    method: "GET",
    path: inProject("/database/tunnels/tun_none"),
    allowed: 404,
  },
  "data.tables": { ...ofProject, scope: "data:read", method: "GET", path: inProject("/data/tables"), allowed: 200 },
  "data.rows": {
    ...ofProject,
    scope: "data:read",
    method: "GET",
    path: inProject("/data/tables/public/notes"),
    allowed: 200,
  },
  "data.query": {
    ...ofProject,
    scope: "data:read",
    method: "POST",
    path: inProject("/database/query"),
    body: () => ({ sql: "select 1" }),
    allowed: 200,
  },
  "data.insert": {
    ...ofProject,
    access: "owner",
    scope: "data:write",
    method: "POST",
    path: inProject("/data/tables/public/notes/rows"),
    body: () => ({ values: { id: 1 } }),
    allowed: 201,
  },
  "data.delete": {
    ...ofProject,
    access: "owner",
    scope: "data:write",
    approval: true,
    method: "DELETE",
    path: inProject("/data/tables/public/notes/rows"),
    body: () => ({ key: { id: 1 } }),
    allowed: 204,
  },
  "metrics.get": { ...ofProject, scope: "metrics:read", method: "GET", path: inProject("/metrics"), allowed: 200 },
  "timeline.list": { ...ofProject, scope: "activity:read", method: "GET", path: inProject("/timeline"), allowed: 200 },
  "diagnosis.get": { ...ofProject, scope: "projects:read", method: "GET", path: inProject("/diagnosis"), allowed: 200 },
  "overview.get": { ...ofNothing, scope: "projects:read", method: "GET", path: () => "/v1/overview", allowed: 200 },
  "disk.get": { ...ofProject, scope: "projects:read", method: "GET", path: inProject("/disk"), allowed: 200 },
  "disk.remove": {
    ...ofProject,
    scope: "projects:write",
    approval: true,
    method: "DELETE",
    path: inProject("/disk/storage"),
    body: () => ({ path: "old" }),
    allowed: 200,
  },
  "disk.limits": {
    ...ofProject,
    everyOrganization: true,
    access: "operator",
    scope: "orgs:write",
    method: "PUT",
    path: ({ project: { slug }, home }) => `/v1/orgs/${home}/projects/${slug}/disk`,
    body: () => ({ storage_bytes: 1024 ** 3 }),
    allowed: 200,
  },
  "activity.changes": {
    ...ofNothing,
    scope: "activity:read",
    method: "GET",
    path: () => "/v1/activity/changes",
    allowed: 200,
  },
  "activity.list": { ...ofNothing, scope: "activity:read", method: "GET", path: () => "/v1/activity", allowed: 200 },
  "backups.create": {
    ...ofProject,
    scope: "backups:write",
    method: "POST",
    path: inProject("/backups"),
    allowed: 201,
  },
  "backups.list": { ...ofProject, scope: "backups:read", method: "GET", path: inProject("/backups"), allowed: 200 },
  "backups.get": {
    ...member,
    names: "backup",
    scope: "backups:read",
    method: "GET",
    path: ({ backup }) => `/v1/backups/${backup}`,
    allowed: 200,
  },
  // The backup of the things failed: it can be neither restored nor verified.
  "backups.restore": {
    ...ofProject,
    scope: "backups:write",
    approval: true,
    method: "POST",
    path: inProject("/restore"),
    body: () => ({}),
    allowed: 409,
  },
  "backups.verify": {
    ...member,
    names: "backup",
    scope: "backups:write",
    method: "POST",
    path: ({ backup }) => `/v1/backups/${backup}/verify`,
    allowed: 409,
  },
  "backups.restored": {
    ...ofProject,
    scope: "backups:read",
    method: "GET",
    path: inProject("/database/restored"),
    allowed: 200,
  },
  "backups.promote": {
    ...ofProject,
    access: "owner",
    scope: "backups:write",
    approval: true,
    method: "POST",
    path: inProject("/database/promote"),
    body: () => ({ database: "restored" }),
    allowed: 200,
  },
  "backups.drop": {
    ...ofProject,
    access: "owner",
    scope: "backups:write",
    approval: true,
    method: "DELETE",
    path: inProject("/database/restored/restored"),
    allowed: 204,
  },
  "logs.list": {
    ...ofProject,
    scope: "logs:read",
    method: "GET",
    path: inProject("/logs?source=build&limit=5"),
    allowed: 200,
  },
  "tokens.create": {
    ...ofNothing,
    scope: "tokens:write",
    approval: true,
    method: "POST",
    path: () => "/v1/api-tokens",
    // A scope that every caller of the matrix holds: the wrong-scope caller lacks tokens:write alone.
    body: () => ({ name: "new", scopes: ["projects:read"] }),
    allowed: 201,
  },
  "tokens.list": { ...ofNothing, scope: "tokens:read", method: "GET", path: () => "/v1/api-tokens", allowed: 200 },
  "tokens.delete": {
    ...member,
    names: "token",
    scope: "tokens:write",
    approval: true,
    method: "DELETE",
    path: ({ token }) => `/v1/api-tokens/${token}`,
    allowed: 204,
  },
  "ssh-keys.create": {
    ...ofNothing,
    scope: "ssh-keys:write",
    further_scopes: ["projects:read", "deployments:write"],
    method: "POST",
    path: () => "/v1/ssh-keys",
    body: () => ({ name: "laptop", public_key: freshKey() }),
    allowed: 201,
  },
  "ssh-keys.list": { ...ofNothing, scope: "ssh-keys:read", method: "GET", path: () => "/v1/ssh-keys", allowed: 200 },
  "ssh-keys.delete": {
    ...member,
    names: "key",
    scope: "ssh-keys:write",
    approval: true,
    method: "DELETE",
    path: ({ key }) => `/v1/ssh-keys/${key}`,
    allowed: 204,
  },
  "registries.list": {
    ...ofNothing,
    scope: "registries:read",
    method: "GET",
    path: () => "/v1/registries",
    allowed: 200,
  },
  "registries.set": {
    ...ofNothing,
    access: "owner",
    scope: "registries:write",
    method: "PUT",
    path: () => "/v1/registries/ghcr.io",
    body: () => ({ username: "ada", password: "a secret" }),
    allowed: 200,
  },
  "registries.delete": {
    names: "registry",
    access: "owner",
    scope: "registries:write",
    approval: true,
    method: "DELETE",
    path: ({ registry }) => `/v1/registries/${registry}`,
    allowed: 204,
  },
  "orgs.create": {
    ...ofNothing,
    access: "operator",
    scope: "orgs:write",
    approval: true,
    method: "POST",
    path: () => "/v1/orgs",
    body: () => ({ slug: fresh(), name: "New" }),
    allowed: 201,
  },
  "orgs.list": {
    ...ofNothing,
    access: "operator",
    scope: "orgs:read",
    method: "GET",
    path: () => "/v1/orgs",
    allowed: 200,
  },
  "orgs.update": {
    ...ofNothing,
    names: "organization",
    access: "operator",
    scope: "orgs:write",
    method: "PATCH",
    path: ({ org }) => `/v1/orgs/${org}`,
    body: () => ({ max_projects: 12 }),
    allowed: 200,
  },
  "orgs.scale": {
    ...ofProject,
    everyOrganization: true,
    access: "operator",
    scope: "deployments:write",
    method: "PUT",
    path: ({ project: { slug }, home }) => `/v1/orgs/${home}/projects/${slug}/scale`,
    body: () => ({ replicas: 2 }),
    allowed: 200,
  },
  "orgs.disable": {
    ...ofNothing,
    names: "organization",
    access: "operator",
    scope: "orgs:write",
    method: "POST",
    path: ({ org }) => `/v1/orgs/${org}/disable`,
    allowed: 200,
  },
  "orgs.enable": {
    ...ofNothing,
    names: "organization",
    access: "operator",
    scope: "orgs:write",
    method: "POST",
    path: ({ org }) => `/v1/orgs/${org}/enable`,
    allowed: 200,
  },
  "webhooks.create": {
    ...{ ...ofWebhook, names: null },
    method: "POST",
    path: () => "/v1/webhooks",
    body: () => ({ name: "new", url: "https://chat.test/new", events: ["alert"] }),
    allowed: 201,
  },
  "webhooks.list": { ...ofWebhook, ...readsWebhooks, names: null, path: () => "/v1/webhooks" },
  "webhooks.update": { ...ofWebhook, method: "PATCH", path: webhook(), body: () => ({ enabled: false }), allowed: 200 },
  "webhooks.delete": { ...ofWebhook, approval: true, method: "DELETE", path: webhook(), allowed: 204 },
  "webhooks.test": { ...ofWebhook, method: "POST", path: webhook("/test"), allowed: 201 },
  "webhooks.deliveries": { ...ofWebhook, ...readsWebhooks, path: webhook("/deliveries") },
  "approvals.list": {
    ...ofNothing,
    scope: "approvals:read",
    method: "GET",
    path: () => "/v1/approvals",
    allowed: 200,
  },
  "approvals.get": {
    ...member,
    names: "approval",
    scope: null,
    method: "GET",
    path: ({ approval }) => `/v1/approvals/${approval}`,
    allowed: 200,
  },
  "status.get": { ...operator, path: () => "/v1/status" },
  "alerts.list": { ...operator, path: () => "/v1/alerts?all=true" },
  "platform.overview": { ...operator, path: () => "/v1/platform/overview" },
};

/** An ed25519 key that nobody has: 32 bytes make one. */
function freshKey(): string {
  const field = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  const number = Buffer.alloc(32);
  number.writeUInt32BE((counter += 1), 0);
  return `ssh-ed25519 ${Buffer.concat([field(Buffer.from("ssh-ed25519")), field(number)]).toString("base64")}`;
}
