import type { NextCall } from "../contract/errors.ts";
import type { RouteName } from "../contract/routes.ts";

/** The commands for the routes that errors and findings refer to; `<slug>` stands for the project in the route's path. */
const commands: Readonly<Partial<Record<RouteName, string>>> = {
  "approvals.list": "berth approvals",
  "backups.create": "berth backups create",
  "backups.list": "berth backups",
  "backups.restored": "berth backups restored",
  "branches.list": "berth db branch",
  "builds.get": "berth builds",
  "builds.list": "berth builds",
  "builds.logs": "berth builds log",
  "cron.list": "berth cron",
  "cron.runs": "berth cron",
  "data.tables": "berth data",
  "database.create": "berth db create",
  "database.get": "berth db",
  "deployments.list": "berth deployments",
  "deployments.rollback": "berth rollback -p <slug>",
  "deployments.compare": "berth compare",
  "deployments.rehearsal": "berth rehearsal",
  "disk.get": "berth disk",
  "domains.list": "berth domains",
  "env.list": "berth env",
  "logs.list": "berth logs",
  "logs.counts": "berth logs --counts",
  "people.invites": "berth members invitations",
  "me.get": "berth whoami",
  "people.list": "berth members",
  "metrics.get": "berth metrics",
  "requests.list": "berth requests",
  "requests.paths": "berth requests --paths",
  "orgs.list": "berth orgs",
  "projects.maintenance": "berth maintenance off -p <slug>",
  "projects.get": "berth projects show <slug>",
  "projects.list": "berth projects",
  "projects.undelete": "berth projects undelete <slug>",
  "registries.list": "berth registries",
  "runs.list": "berth runs",
  "self-description.capabilities": "berth capabilities",
  "ssh-keys.list": "berth keys",
  "tokens.list": "berth tokens",
};

export function listHint(row: RouteName): string {
  return `\`${commands[row] ?? `berth api ${row}`}\` lists what there is.`;
}

/** Returns the command for the call that an error suggests; undefined if there is none. */
export function commandFor(next: Partial<NextCall>): string | undefined {
  const [, slug = "<slug>"] = /^\/v1\/projects\/([^/?]+)/.exec(next.path ?? "") ?? [];
  return commands[next.route as RouteName]?.replace("<slug>", decodeURIComponent(slug));
}
