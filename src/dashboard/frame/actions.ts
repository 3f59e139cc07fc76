import type { RouteName } from "../../contract/routes.ts";

/** The palette's actions on a project: label, and the route that decides who may use them. */
export const projectActions = {
  deploy: ["Deploy again …", "deployments.create"],
  rollback: ["Roll back …", "deployments.rollback"],
  cancel: ["Cancel the running deployment …", "builds.cancel"],
  restart: ["Restart …", "processes.restart"],
  scale: ["Scale …", "processes.set"],
  run: ["Run a command …", "runs.create"],
  variable: ["Set a variable …", "env.set"],
  envFile: ["Paste a .env …", "env.import"],
  removeVariable: ["Remove a variable …", "env.delete"],
  domain: ["Attach a domain …", "domains.attach"],
  detach: ["Detach a domain …", "domains.detach"],
  job: ["New cron job …", "cron.set"],
  runJob: ["Run a cron job now …", "cron.run"],
  importJobs: ["Import cron jobs …", "cron.import"],
  deleteJob: ["Delete a cron job …", "cron.delete"],
  database: ["Create the database …", "database.create"],
  backup: ["Make a backup …", "backups.create"],
  verify: ["Verify a backup …", "backups.verify"],
  restore: ["Restore a backup …", "backups.restore"],
  promote: ["Promote a restored database …", "backups.promote"],
  drop: ["Drop a restored database …", "backups.drop"],
  follow: ["Follow a repository …", "follow.set"],
  fetch: ["Fetch the followed repository …", "follow.fetch"],
  stopFollowing: ["Stop following the repository …", "follow.delete"],
  maintenance: ["Maintenance page …", "projects.maintenance"],
  rename: ["Rename …", "projects.rename"],
  limits: ["Change the disk limits …", "disk.limits"],
  move: ["Move to another runtime …", "platform.move"],
  delete: ["Delete the project …", "projects.delete"],
  undelete: ["Undelete the project …", "projects.undelete"],
} as const satisfies Record<string, readonly [string, RouteName]>;

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
  | { readonly kind: keyof typeof projectActions; readonly slug: string }
  | { readonly kind: keyof typeof globalActions };

export interface OfProject {
  readonly slug: string;
  readonly onClose: () => void;
}
