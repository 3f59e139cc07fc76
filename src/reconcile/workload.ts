import { databaseFor } from "../features/database/database.ts";
import { openVariables } from "../features/deployments/deployments.ts";
import { redactor } from "../kit/redact.ts";
import type { Image } from "../ports/builder.ts";
import type { Workload } from "../ports/runtime.ts";
import type { Platform } from "./platform.ts";

/** A deployment row with what its project adds to it. */
export interface WorkloadSource {
  readonly id: string;
  readonly org_id: string;
  readonly project_id: string;
  readonly project_number: number;
  readonly slug: string;
  readonly hostname: string;
  readonly replicas: number;
  readonly number: number;
  readonly commit: string;
  readonly image: Image;
  readonly port: number | null;
  readonly sealed_variables: Buffer;
  readonly sealed_cron_secret: Buffer;
}

/** What the runtime is asked to run for a deployment: its pinned image and variables, and what the platform adds. */
export async function workloadOf(platform: Platform, source: WorkloadSource): Promise<Workload> {
  const database = await databaseFor(platform.db, platform.vault, source);
  const env = {
    ...openVariables(platform.vault, source),
    ...database.env,
    CRON_SECRET: platform.vault.open(source.project_id, "cron_secret", source.sealed_cron_secret),
    BERTH_PROJECT: source.slug,
    BERTH_DEPLOYMENT: source.id,
    BERTH_GIT_SHA: source.commit,
    BERTH_URL: platform.appUrl(source.hostname),
  };
  return {
    id: source.id,
    project_id: source.project_id,
    project_number: source.project_number,
    image_ref: source.image.image_ref,
    replicas: source.replicas,
    port: source.port ?? platform.settings.appPort,
    env,
    limits: platform.settings.workloadLimits,
    reach: database.reach,
  };
}

const harmless = new Set(["BERTH_PROJECT", "BERTH_DEPLOYMENT", "BERTH_GIT_SHA", "BERTH_URL", "PGHOST", "PGPORT"]);

/** The values of an application's environment that no log may show. */
export function secretsIn(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([key, value]) => (harmless.has(key) ? [] : [value]));
}

/** Hides secrets in a text. */
export type Redact = (text: string) => string;

/** What hides the secrets of exactly this environment; for what is started again later see `createRedactors`. */
export function redactorOf(workload: Workload): Redact {
  return redactor(secretsIn(workload.env));
}
