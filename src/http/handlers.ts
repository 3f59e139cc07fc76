import type { Named } from "../contract/table.ts";
import type { Handlers, Noun } from "../features/context.ts";
import type { Db, Tx } from "../store/database.ts";
import { alerts } from "../features/alerts/handlers.ts";
import { approvals } from "../features/approvals/handlers.ts";
import { findApproval } from "../features/approvals/approvals.ts";
import { activity } from "../features/activity/handlers.ts";
import { backups } from "../features/backups/handlers.ts";
import { findBackup } from "../features/backups/backups.ts";
import { findBuild } from "../features/builds/builds.ts";
import { branches } from "../features/branches/handlers.ts";
import { builds } from "../features/builds/handlers.ts";
import { cron } from "../features/cron/handlers.ts";
import { data } from "../features/data/handlers.ts";
import { database } from "../features/database/handlers.ts";
import { deployments } from "../features/deployments/handlers.ts";
import { diagnosis } from "../features/diagnosis/handlers.ts";
import { previews } from "../features/previews/handlers.ts";
import { processes } from "../features/processes/handlers.ts";
import { providers } from "../features/providers/handlers.ts";
import { registries } from "../features/registries/handlers.ts";
import { findRegistry } from "../features/registries/registries.ts";
import { runs } from "../features/runs/handlers.ts";
import { disk } from "../features/disk/handlers.ts";
import { domains } from "../features/domains/handlers.ts";
import { env } from "../features/env/handlers.ts";
import { follow } from "../features/follow/handlers.ts";
import { logs } from "../features/logs/handlers.ts";
import { requests } from "../features/requests/handlers.ts";
import { me } from "../features/me/handlers.ts";
import { metrics } from "../features/metrics/handlers.ts";
import { orgs } from "../features/orgs/handlers.ts";
import { findOrganization } from "../features/orgs/orgs.ts";
import { people } from "../features/people/handlers.ts";
import { findInvite, findMember } from "../features/people/people.ts";
import { overview } from "../features/overview/handlers.ts";
import { platform } from "../features/platform/handlers.ts";
import { projects } from "../features/projects/handlers.ts";
import { findProject } from "../features/projects/projects.ts";
import { selfDescription } from "../features/self-description/handlers.ts";
import { sshKeys } from "../features/ssh-keys/handlers.ts";
import { findKey } from "../features/ssh-keys/ssh-keys.ts";
import { status } from "../features/status/handlers.ts";
import { templates } from "../features/templates/handlers.ts";
import { timeline } from "../features/timeline/handlers.ts";
import { tokens } from "../features/tokens/handlers.ts";
import { findToken } from "../features/tokens/tokens.ts";
import { webhooks } from "../features/webhooks/handlers.ts";
import { findWebhook } from "../features/webhooks/webhooks.ts";

/** The handlers of every noun of the contract. The pipeline knows particular nouns only from this list and the finders below. */
export const handlers: { readonly [N in Noun]: Handlers<N> } = {
  "self-description": selfDescription,
  me,
  projects,
  deployments,
  previews,
  processes,
  diagnosis,
  registries,
  runs,
  branches,
  builds,
  follow,
  env,
  disk,
  domains,
  cron,
  database,
  backups,
  data,
  metrics,
  templates,
  timeline,
  logs,
  requests,
  overview,
  activity,
  tokens,
  people,
  providers,
  "ssh-keys": sshKeys,
  webhooks,
  orgs,
  approvals,
  status,
  alerts,
  platform,
};

/** An object that a path names: its id, the project that it belongs to, and the token that created it, where it has them. */
export interface Found {
  readonly id: string;
  readonly project_id?: string | null;
  readonly token_id?: string;
  readonly created_by?: string | null;
}

type Find = (db: Db | Tx, orgId: string, name: string) => Promise<Found | undefined>;

/** Finds the object that a path names within the caller's organization: before a malformed request's error, and for approvals. */
export const finders: Readonly<Record<Named, Find>> = {
  project: findProject,
  build: findBuild,
  backup: findBackup,
  token: findToken,
  member: findMember,
  invite: findInvite,
  key: findKey,
  approval: findApproval,
  organization: findOrganization,
  webhook: findWebhook,
  registry: findRegistry,
};
