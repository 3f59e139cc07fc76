import { databaseFor } from "../features/database/database.ts";
import { openVariables, type WorkloadSource } from "../features/deployments/deployments.ts";
import { previewEnv } from "../features/previews/previews.ts";
import { storageOf } from "../features/disk/disk.ts";
import { web, workloadId } from "../features/replicas/replicas.ts";
import { redactor, type Redact } from "../kit/redact.ts";
import type { ServerAddress } from "../kit/server-address.ts";
import type { Workload } from "../ports/runtime.ts";
import type { Platform } from "./platform.ts";

/** The PORT of applications whose project sets none. */
const standardPort = 3000;

/** Returns what the runtime runs for a deployment's process type: its pinned image and variables, and what the platform adds. */
export async function workloadOf(platform: Platform, source: WorkloadSource, process: string): Promise<Workload> {
  const { env, reach } = await environmentOf(platform, source, openVariables(platform.vault, source));
  return {
    id: workloadId({ deployment_id: source.id, process }),
    process,
    project_id: source.project_id,
    project_number: source.project_number,
    image_ref: source.image.image_ref,
    ...(source.image.runtime === undefined ? {} : { runtime: source.image.runtime }),
    port: process === web ? (source.port ?? standardPort) : null,
    env: { ...env, BERTH_DEPLOYMENT: source.id },
    limits: platform.settings.workloadLimits,
    reach,
    ...(await storageOf(platform.db, source.project_id)),
  };
}

/** The environment of a project's builds and applications: its variables and what the platform adds. */
export interface ProjectEnvironment {
  readonly env: Readonly<Record<string, string>>;
  readonly reach: readonly ServerAddress[];
}

type EnvironmentSource = Pick<
  WorkloadSource,
  "id" | "org_id" | "project_id" | "slug" | "hostname" | "commit" | "sealed_cron_secret"
>;

/** Builds the environment of a deployment, or of a build (which uses the live database), from the project's variables. */
export async function environmentOf(
  platform: Platform,
  source: EnvironmentSource & Partial<Pick<WorkloadSource, "image">>,
  variables: Readonly<Record<string, string>>,
): Promise<ProjectEnvironment> {
  const endpointFor = (server: ServerAddress) => platform.ports.runtime.endpointFor(server, source.image?.runtime);
  const { tlsOf } = platform.ports.postgresHost;
  const database = await databaseFor(platform.db, platform.vault, source, { endpointFor, tlsOf });
  const env = {
    ...variables,
    ...database.env,
    CRON_SECRET: platform.vault.open(source.project_id, "cron_secret", source.sealed_cron_secret),
    BERTH_PROJECT: source.slug,
    BERTH_GIT_SHA: source.commit,
    BERTH_URL: platform.appUrl(source.hostname),
    ...(await previewEnv(platform.db, source)),
  };
  return { env, reach: database.reach };
}

const harmless = new Set([
  "BERTH_PROJECT",
  "BERTH_DEPLOYMENT",
  "BERTH_GIT_SHA",
  "BERTH_URL",
  "BERTH_GIT_BRANCH",
  "BERTH_PREVIEW",
  "BERTH_PREVIEW_OF",
  "PGHOST",
  "PGPORT",
  "PGSSLMODE",
]);

/** Returns the values of an application's environment that no log may show. */
export function secretsIn(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([key, value]) => (harmless.has(key) ? [] : [value]));
}

/** Returns a redactor for exactly this environment; if replicas may be restarted later, use `createRedactors`. */
export function redactorOf(workload: Workload): Redact {
  return redactor(secretsIn(workload.env));
}
