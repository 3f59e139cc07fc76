import { sql } from "kysely";
import { triggersOfBuilds } from "../../contract/states.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";
import { awaitOutcome } from "../await-outcome.ts";
import type { Context } from "../context.ts";
import { getDeployment, isSwitching } from "./queries.ts";
import { isOwnFault } from "./rules.ts";

interface Awaited<Code> {
  readonly signal: AbortSignal;
  readonly unhealthy: Code;
}

type Waits = Context<"deployments.rollback"> | Context<"processes.restart">;
type Fail = (
  code:
    | "unavailable"
    | "edge_unavailable"
    | "org_suspended"
    | "project_deleted"
    | "previous_unhealthy"
    | "restart_failed",
  more?: { readonly error?: string; readonly hint?: string; readonly foreign?: true },
) => never;

/** Waits until the deployment is served and returns it. Refuses when it fails. */
export function deploymentOutcome<Code extends "previous_unhealthy" | "restart_failed">(
  ctx: Pick<Waits, "platform" | "caller"> & { readonly fail: unknown },
  id: string,
  { signal, unhealthy }: Awaited<Code>,
) {
  const fail = ctx.fail as Fail;
  return awaitOutcome(ctx.platform.wakeups, { id, signal }, async () => {
    const deployment = await getDeployment(ctx.platform.db, ctx.caller.org_id, id);
    const isServed = deployment?.status === "active" && !(await isSwitching(ctx.platform.db, ctx.caller.org_id, id));
    if (isServed || deployment?.status === "retired") return deployment;
    if (deployment?.status === "failed" && deployment.failure !== null)
      return refuse(fail, deployment.failure, unhealthy);
    if (deployment?.status === "superseded")
      return fail("unavailable", {
        error: "A newer deployment replaced this one before it went live.",
        hint: "The list of deployments shows the newer one.",
      });
    return undefined;
  });
}

/** Only a failure that the application caused makes it unhealthy. */
function refuse(fail: Fail, failure: Failure, unhealthy: "previous_unhealthy" | "restart_failed"): never {
  const { code, summary: error, hint } = failure;
  if (code === "project_deleted" || code === "org_suspended") return fail(code);
  if (code === "edge_unavailable") return fail(code, { error, hint });
  if (isOwnFault(failure)) return fail(unhealthy, { error, hint, foreign: true });
  return fail("unavailable", { error, hint });
}

/** Fails the build's deployment that is in progress; raising the fence takes it away from its worker. Returns undefined when there is none. */
export async function endComing(
  db: Db | Tx,
  build: { readonly org_id: string; readonly id: string },
  failure: Failure,
): Promise<{ readonly id: string; readonly project_id: string } | undefined> {
  return db
    .updateTable("deployment")
    .set({
      status: "failed",
      failure: JSON.stringify(failure),
      finished_at: sql`now()`,
      lease_until: null,
      fence: sql`fence + 1`,
    })
    .where(({ and }) => and({ org_id: build.org_id, build_id: build.id }))
    .where("trigger", "in", triggersOfBuilds)
    .where("status", "in", ["pending", "starting"])
    .returning(["id", "project_id"])
    .executeTakeFirst();
}
