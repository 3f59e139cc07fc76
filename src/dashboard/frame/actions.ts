import type { RouteName } from "../../contract/routes.ts";

/** What the palette does with a project; the row says who may. */
export const projectActions = {
  deploy: ["Deploy again …", "deployments.create"],
  rollback: ["Roll back …", "deployments.rollback"],
  restart: ["Restart …", "processes.restart"],
  scale: ["Scale …", "processes.set"],
  run: ["Run a command …", "runs.create"],
  variable: ["Set a variable …", "env.set"],
  envFile: ["Paste a .env …", "env.set"],
  domain: ["Attach a domain …", "domains.attach"],
  job: ["New cron job …", "cron.set"],
  runJob: ["Run a cron job now …", "cron.run"],
  backup: ["Make a backup …", "backups.create"],
  delete: ["Delete the project …", "projects.delete"],
} as const satisfies Record<string, readonly [string, RouteName]>;

/** What it does in the organization, and on the platform. */
export const globalActions = {
  project: ["New project …", "projects.create"],
  token: ["New token …", "tokens.create"],
  sshKey: ["Add an SSH key …", "ssh-keys.create"],
  webhook: ["Add a webhook …", "webhooks.create"],
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
