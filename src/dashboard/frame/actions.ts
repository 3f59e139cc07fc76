import type { RouteName } from "../../contract/routes.ts";

/** The palette's actions on a project: label, the route that decides who may use them, and the page that shows the result. */
export const projectActions = {
  deploy: ["Deploy again …", "deployments.create", "deployments"],
  rollback: ["Roll back …", "deployments.rollback", "deployments"],
  cancel: ["Cancel the running deployment …", "builds.cancel", "deployments"],
  restart: ["Restart …", "processes.restart", "processes"],
  scale: ["Scale …", "processes.set", "processes"],
  run: ["Run a command …", "runs.create"],
  variable: ["Set a variable …", "env.set", "variables"],
  envFile: ["Paste a .env …", "env.import", "variables"],
  removeVariable: ["Remove a variable …", "env.delete", "variables"],
  domain: ["Attach a domain …", "domains.attach", "domains"],
  detach: ["Detach a domain …", "domains.detach", "domains"],
  job: ["New cron job …", "cron.set", "cron"],
  runJob: ["Run a cron job now …", "cron.run", "cron"],
  importJobs: ["Import cron jobs …", "cron.import", "cron"],
  deleteJob: ["Delete a cron job …", "cron.delete", "cron"],
  database: ["Create the database …", "database.create", "database"],
  backup: ["Make a backup …", "backups.create", "backups"],
  verify: ["Verify a backup …", "backups.verify", "backups"],
  restore: ["Restore a backup …", "backups.restore"],
  promote: ["Promote a restored database …", "backups.promote", "backups"],
  drop: ["Drop a restored database …", "backups.drop", "backups"],
  follow: ["Follow a repository …", "follow.set"],
  fetch: ["Fetch the followed repository …", "follow.fetch", "settings"],
  stopFollowing: ["Stop following the repository …", "follow.delete", "settings"],
  maintenance: ["Maintenance page …", "projects.maintenance", "settings"],
  rename: ["Rename …", "projects.rename"],
  limits: ["Change the disk limits …", "disk.limits", "settings"],
  move: ["Move to another runtime …", "platform.move", "deployments"],
  delete: ["Delete the project …", "projects.delete"],
  undelete: ["Undelete the project …", "projects.undelete", "deployments"],
} as const satisfies Record<string, ProjectAction>;

type ProjectAction = readonly [label: string, row: RouteName, tab?: Tab];

type Tab = "deployments" | "processes" | "variables" | "domains" | "cron" | "database" | "backups" | "settings";

/** The palette's actions in the organization and on the platform. */
export const globalActions = {
  project: ["New project …", "projects.create"],
  token: ["New token …", "tokens.create"],
  sshKey: ["Add an SSH key …", "ssh-keys.create"],
  webhook: ["Add a notification channel …", "webhooks.create"],
  registry: ["Add an image registry …", "registries.set"],
  org: ["New organization …", "orgs.create"],
} as const satisfies Record<string, readonly [string, RouteName]>;

export type Asked =
  | { readonly kind: keyof typeof projectActions; readonly slug: string; readonly tab: Tab | undefined }
  | { readonly kind: keyof typeof globalActions };

export interface OfProject {
  readonly slug: string;
}
