import { databaseEnv, databaseOfDeployment, serverOf } from "../features/database/database.ts";
import { openVariables, sealedSecretsOf } from "../features/deployments/deployments.ts";
import { redactor } from "../kit/redact.ts";
import { secretsIn } from "./workload.ts";
import type { Redact } from "../kit/redact.ts";
import type { Platform } from "./platform.ts";

/** A deployment whose output is about to be stored. */
export interface OutputOwner {
  readonly id: string;
  readonly org_id: string;
  readonly project_id: string;
}

/**
 * What hides the secrets of a deployment's applications. To be asked for after their output was read: what was started before has
 * secrets that are known by then. Throws when the deployment is gone or its secrets cannot be opened.
 */
export type Redactors = (owner: OutputOwner) => Promise<Redact>;

const kept = 1000;

/**
 * Opens a deployment's variables once, because they are pinned. Its database is looked at each time: what is started again gets
 * the variables of the database that it has by then.
 */
export function createRedactors(platform: Platform): Redactors {
  const known = new Map<string, Known>();
  return async (owner) => {
    const deployment = known.get(owner.id) ?? (await open(platform, owner));
    // The one that was asked for last is forgotten last.
    known.delete(owner.id);
    known.set(owner.id, deployment);
    if (known.size > kept) known.delete(known.keys().next().value as string);
    await addDatabase(platform, owner, deployment);
    return deployment.redact;
  };
}

interface Known {
  readonly secrets: Set<string>;
  databaseVersion: string;
  redact: Redact;
}

async function open({ db, vault }: Platform, owner: OutputOwner): Promise<Known> {
  const sealed = await sealedSecretsOf(db, owner.org_id, owner.id);
  if (sealed === undefined) throw new Error("the deployment is gone");
  const { id, project_id } = owner;
  const variables = openVariables(vault, { id, project_id, sealed_variables: sealed.sealed_variables });
  const cronSecret = vault.open(project_id, "cron_secret", sealed.sealed_cron_secret);
  const secrets = new Set([...secretsIn(variables), cronSecret]);
  return { secrets, databaseVersion: "", redact: redactor(secrets) };
}

/** What was a secret stays one: a process may hold what it was started with. */
async function addDatabase({ db, vault, ports }: Platform, owner: OutputOwner, deployment: Known): Promise<void> {
  const row = await databaseOfDeployment(db, owner);
  const server = row && serverOf(row);
  if (!server) return;
  const version = [
    row.id,
    server.host,
    server.port,
    row.role_name,
    row.database_name,
    row.sealed_password.toString("base64"),
  ].join();
  if (deployment.databaseVersion === version) return;
  for (const secret of secretsIn(databaseEnv(vault, row, ports.runtime.endpointFor(server))))
    deployment.secrets.add(secret);
  deployment.redact = redactor(deployment.secrets);
  deployment.databaseVersion = version;
}
