import type { Failure } from "../../ports/failure.ts";
import { awaitOutcome } from "../await-outcome.ts";
import { newestSource, requestBuild } from "../builds/builds.ts";
import { limits } from "../../contract/limits.ts";
import { pageOf } from "../../kit/page.ts";
import type { Context, Handlers, RefusalText } from "../context.ts";
import { requireRoomForBuild } from "../disk/disk.ts";
import { rollBack, scaleProject } from "./deployments.ts";
import { comingDeployment, getDeployment, isSwitching, listDeployments } from "./queries.ts";
import { isOwnFault } from "./rules.ts";

export const deployments: Handlers<"deployments"> = {
  async list(ctx, { query }) {
    const rows = await listDeployments(ctx.tx, ctx.project.org_id, ctx.project.id, query.cursor);
    const { shown, next_cursor } = pageOf(rows, limits.deployments_listed, ({ number }) => String(number));
    return { deployments: shown, next_cursor };
  },

  async create(ctx, { body }) {
    const { org_id, project_id } = ctx.project.key;
    await requireRoomForBuild(ctx);
    const source = await newestSource(ctx.tx, org_id, project_id, body.commit);
    if (source === undefined) return ctx.fail("nothing_to_deploy");
    if (await comingDeployment(ctx.tx, org_id, project_id)) return ctx.fail("deploy_in_progress");
    const { commit, branch, message } = source;
    const wanted = {
      ...ctx.project.key,
      origin: "redeploy",
      commit,
      branch,
      message,
      old_commit: null,
      lease_owner: null,
    } as const;
    const build = await requestBuild(ctx.tx, ctx.platform.wakeups, { ...wanted, requested_by: ctx.caller.token_name });
    ctx.note({ target: build.id, detail: { commit } });
    return { build_id: build.id, commit };
  },

  async rollback(ctx, { body }) {
    const made = await rollBack(ctx.platform, ctx.tx, ctx.project.key, body.deployment);
    switch (made.outcome) {
      case "project_deleted":
      case "org_suspended":
        return ctx.fail(made.outcome);
      case "in_progress":
        return ctx.fail("deploy_in_progress");
      case "nothing":
        return ctx.fail("nothing_to_roll_back", textOfNothing(body.deployment));
      case "made": {
        const changed_variables = [...(made.changed_variables ?? [])];
        ctx.note({ target: made.id, detail: { number: made.number, changed_variables } });
        const outcome = async (signal: AbortSignal) => ({
          ...(await rollbackOutcome(ctx, made.id, signal)),
          changed_variables,
        });
        return { outcome };
      }
    }
  },

  scale: (ctx, { body }) => scaleProject(ctx, body.replicas),
};

function textOfNothing(number: number | undefined): RefusalText {
  if (number === undefined) return {};
  return {
    error: `There is no deployment ${number} to go back to: the number does not exist, or that deployment never served, serves now, or has lost its image.`,
    hint: "Choose the number of a deployment with the status `retired`.",
  };
}

function rollbackOutcome(ctx: Context<"deployments.rollback">, id: string, signal: AbortSignal) {
  return awaitOutcome(ctx.platform.wakeups, { id, signal }, async () => {
    const deployment = await getDeployment(ctx.platform.db, ctx.caller.org_id, id);
    const isServed = deployment?.status === "active" && !(await isSwitching(ctx.platform.db, ctx.caller.org_id, id));
    if (isServed || deployment?.status === "retired") return { status: "rolled_back" as const, deployment };
    if (deployment?.status === "failed" && deployment.failure !== null) return refuseRollback(ctx, deployment.failure);
    if (deployment?.status === "superseded") return ctx.fail("unavailable", { error: "Another change came first." });
    return undefined;
  });
}

/** Only what the earlier application did itself makes it unhealthy. */
function refuseRollback(ctx: Context<"deployments.rollback">, failure: Failure): never {
  const { code, summary: error, hint } = failure;
  if (code === "project_deleted" || code === "org_suspended") return ctx.fail(code);
  if (code === "edge_unavailable") return ctx.fail(code, { error, hint });
  if (isOwnFault(failure)) return ctx.fail("previous_unhealthy", { error, hint });
  return ctx.fail("unavailable", { error, hint });
}
