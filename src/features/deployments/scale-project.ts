import type { Context } from "../context.ts";
import { setReplicas } from "./queries.ts";

/** Sets how many replicas of `ctx.project` run; the reconciler starts and stops them. */
export async function scaleProject(ctx: Context<"deployments.scale"> | Context<"orgs.scale">, replicas: number) {
  const { key, slug: target } = ctx.project;
  await setReplicas(ctx.tx, key, replicas);
  await ctx.platform.wakeups.send(ctx.tx, "apps", key.project_id);
  ctx.note({ target, detail: { replicas } });
  return { replicas };
}
