import type { Result } from "../../contract/routes.ts";
import { newestSource, requestBuild } from "../builds/builds.ts";
import { recordEvent } from "../activity/activity.ts";
import type { Context } from "../context.ts";
import { comingDeployment } from "../deployments/deployments.ts";
import { requireRoomForBuild } from "../disk/disk.ts";
import * as queries from "./queries.ts";

type Shown = Result<"platform.runtime">;

/** Returns the runtime of `ctx.project`, and the state of its newest move. */
export async function showRuntime(ctx: Context<"platform.runtime"> | Context<"platform.move">): Promise<Shown> {
  const { tx, project, platform } = ctx;
  const available = (await platform.ports.runtime.describe()).name.split(",");
  const active = await queries.activeImage(tx, project.key);
  const move = await queries.newestMove(tx, project.key);
  return {
    runtime: active === undefined ? null : (active.runtime ?? available[0] ?? null),
    available,
    move: move === undefined ? null : presentMove(move),
  };
}

type Move = NonNullable<Awaited<ReturnType<typeof queries.newestMove>>>;

function presentMove({ runtime, build_id, created_at, build, deployment, ...failures }: Move): Shown["move"] {
  const failure = failures.deployment_failure ?? failures.build_failure;
  return { to: runtime, build_id, requested_at: created_at, status: statusOf(build, deployment), failure };
}

function statusOf(build: string, deployment: string | null): NonNullable<Shown["move"]>["status"] {
  if (build === "queued" || build === "running") return "building";
  if (build !== "succeeded" || deployment === "failed" || deployment === "superseded") return "failed";
  return deployment === "active" || deployment === "retired" ? "done" : "deploying";
}

/**
 * Queues a build of the live commit for another runtime. Only the image determines where it runs, so nothing else changes before that
 * deployment is healthy, and a rollback returns to the earlier image's runtime.
 */
export async function moveProject(ctx: Context<"platform.move">, runtime: string): Promise<Shown> {
  const { tx, project, platform, caller } = ctx;
  const now = await showRuntime(ctx);
  if (!now.available.includes(runtime))
    return ctx.fail("conflict", {
      error: `This platform does not have the runtime ${runtime}: it has ${now.available.join(" and ")}.`,
      hint: "The setting BERTH_RUNTIME names all runtimes of a platform, as in BERTH_RUNTIME=process,docker.",
    });
  if (now.runtime === runtime)
    return ctx.fail("conflict", { error: `The project already runs in ${runtime}.`, hint: "No action is needed." });
  await requireRoomForBuild(ctx);
  const { org_id, project_id } = project.key;
  const active = await queries.activeImage(tx, project.key);
  const source = active && (await newestSource(tx, org_id, project_id, active.commit));
  if (source === undefined) return ctx.fail("nothing_to_deploy");
  if (await comingDeployment(tx, org_id, project_id)) return ctx.fail("deploy_in_progress");
  const { commit, branch, message, author } = source;
  await requestBuild(tx, platform.wakeups, {
    ...{ ...project.key, origin: "redeploy", commit, branch, message, author, old_commit: null, lease_owner: null },
    ...{ runtime, requested_by: caller.token_name, copies_data: caller.approval_mode, token_id: caller.token_id },
  });
  const event = { action: "project.moved", target: project.slug, detail: { runtime } } as const;
  if (org_id !== caller.org_id) await recordEvent(tx, { org_id, project_id, ...event });
  ctx.note({ target: event.target, detail: event.detail });
  return showRuntime(ctx);
}
