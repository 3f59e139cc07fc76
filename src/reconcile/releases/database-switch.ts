import { databaseOfDeployment, specOf } from "../../features/database/database.ts";
import { activeOf } from "../../features/deployments/deployments.ts";
import type { Taken } from "./taken.ts";

/**
 * Prepares the switch to another database, after a promotion. The next one accepts writes, because it may be one that was left before.
 * `leave` ends all writes to the one in use, just before requests go to the new deployment: a write that is acknowledged afterwards is in
 * the next database. `comeBack` undoes that for a deployment that failed.
 */
export async function databaseSwitch(taken: Pick<Taken, "platform" | "deployment">) {
  const { platform, deployment } = taken;
  const { db, vault, ports } = platform;
  const active = await activeOf(db, deployment.org_id, deployment.project_id);
  if (active === undefined || active.id === deployment.id) return undefined;
  const next = await databaseOfDeployment(db, deployment);
  const left = await databaseOfDeployment(db, { ...deployment, id: active.id });
  if (next === undefined || left === undefined || next.database_name === left.database_name) return undefined;
  const spec = specOf(vault, next);
  return {
    prepare: () => ports.postgresHost.setWritable(spec, next.database_name, true),
    leave: () => ports.postgresHost.setWritable(spec, left.database_name, false),
    comeBack: () => ports.postgresHost.setWritable(spec, left.database_name, true),
  };
}
