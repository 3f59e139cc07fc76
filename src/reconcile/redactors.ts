import { databaseEnv, databaseOfDeployment, serverOf } from "../features/database/database.ts";
import { openVariables, sealedSecretsOf } from "../features/deployments/deployments.ts";
import { redactor } from "../kit/redact.ts";
import { secretsIn } from "./workload.ts";
import type { Redact } from "../kit/redact.ts";
import type { Platform } from "./platform.ts";

export interface OutputOwner {
  readonly id: string;
  readonly org_id: string;
  readonly project_id: string;
}

/**
 * Returns the function that redacts a deployment's secrets. Call this after the output was read: only then are the secrets of all processes
 * that wrote it known. Throws if the deployment is gone or its secrets can't be decrypted.
 */
export type Redactors = (owner: OutputOwner) => Promise<Redact>;

const kept = 1000;

/** Creates the redactors. Pinned variables are decrypted once; the database's are checked at each call, since restarts get new ones. */
export function createRedactors(platform: Platform): Redactors {
  const known = new Map<string, Known>();
  return async (owner) => {
    const deployment = known.get(owner.id) ?? (await open(platform, owner));
    known.set(owner.id, deployment);
    if (known.size > kept) known.delete(known.keys().next().value as string);
    await addDatabase(platform, owner, deployment);
    return deployment.redact;
  };
}

type Known = Awaited<ReturnType<typeof open>>;

async function open({ db, vault }: Platform, owner: OutputOwner) {
  const sealed = await sealedSecretsOf(db, owner.org_id, owner.id);
  if (sealed === undefined) throw new Error("the deployment is gone");
  const { id, project_id } = owner;
  const variables = openVariables(vault, { id, project_id, sealed_variables: sealed.sealed_variables });
  const cronSecret = vault.open(project_id, "cron_secret", sealed.sealed_cron_secret);
  const secrets = new Set([...secretsIn(variables), cronSecret]);
  return { secrets, databaseVersion: "", redact: redactor(secrets) };
}

/** Adds the database's current secrets and keeps earlier ones: a process may still hold those it was started with. */
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
  for (const secret of secretsIn(databaseEnv(vault, row, ports.runtime.endpointFor(server), null)))
    deployment.secrets.add(secret);
  deployment.redact = redactor(deployment.secrets);
  deployment.databaseVersion = version;
}
