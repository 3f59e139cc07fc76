import type { Result } from "../../contract/routes.ts";
import { awaitOutcome } from "../await-outcome.ts";
import type { Context, Handlers } from "../context.ts";
import { deploymentOutcome, restartDeployment, setReplicas } from "../deployments/deployments.ts";
import { web, workloadId } from "../replicas/replicas.ts";
import * as queries from "./queries.ts";

export const processes: Handlers<"processes"> = {
  async list(ctx) {
    const { org_id, project_id } = ctx.project.key;
    const types = await queries.activeTypes(ctx.tx, org_id, project_id);
    const running = await queries.runningReplicas(ctx.tx, org_id, project_id);
    return {
      processes: types.map(({ process, command, replicas, overlap }) => ({
        ...{ type: process, command, replicas, overlap },
        running: running.filter((row) => row.process === process).map(presentReplica),
      })),
    };
  },

  async set(ctx, { params: { type }, body }) {
    const { key } = ctx.project;
    const types = await queries.activeTypes(ctx.tx, key.org_id, key.project_id);
    if (types.length > 0 && !types.some(({ process }) => process === type)) return unknownType(ctx, types);
    ctx.note({ target: type, detail: body, silent: Object.keys(body).length === 0 });
    const set = type === web ? await setWeb(ctx, body) : await setOther(ctx, type, body);
    await ctx.platform.wakeups.send(ctx.tx, "apps", key.project_id);
    return { type, ...set };
  },

  async restart(ctx, { body: { type } }) {
    const { org_id, project_id } = ctx.project.key;
    const types = await queries.activeTypes(ctx.tx, org_id, project_id);
    const wanted = types.find(({ process }) => process === type);
    if (type !== undefined && types.length > 0 && wanted === undefined) return unknownType(ctx, types);
    ctx.note({ target: type ?? ctx.project.slug, detail: {} });
    return wanted === undefined || type === web ? restartAll(ctx) : restartType(ctx, wanted);
  },
};

type Type = queries.ProcessTypeRow;

function presentReplica(row: queries.RunningRow): Result<"processes.list">["processes"][number]["running"][number] {
  const { ordinal, number, since, restarts, memory_bytes, cpus } = row;
  const shown = cpus === null ? null : Math.round(cpus * 1000) / 1000;
  return { replica: ordinal, deployment: number, state: stateOf(row), since, restarts, memory_bytes, cpus: shown };
}

function stateOf({ state, ready }: queries.RunningRow) {
  if (state === "draining") return "stopping";
  if (state === "exited") return "crashed";
  return state === "running" && ready ? "up" : "starting";
}

function unknownType(ctx: Context<"processes.set"> | Context<"processes.restart">, types: readonly Type[]): never {
  const names = types.map(({ process }) => process).join(", ");
  return ctx.fail("not_found", { error: `The active deployment has no process type of this name; it has ${names}.` });
}

async function setWeb(
  ctx: Context<"processes.set">,
  body: { replicas?: number | undefined; overlap?: boolean | undefined },
) {
  const { project } = ctx;
  if (body.replicas === 0 || body.overlap === false)
    return ctx.fail("invalid_request", {
      error: "The process type web must have 1 to 8 replicas.",
    });
  if (body.replicas !== undefined) await setReplicas(ctx.tx, project.key, body.replicas);
  return { replicas: body.replicas ?? project.replicas, overlap: true };
}

async function setOther(
  ctx: Context<"processes.set">,
  process: string,
  { replicas, overlap }: { replicas?: number | undefined; overlap?: boolean | undefined },
) {
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(process) || process === "release")
    return ctx.fail("not_found", { error: "No process type can have this name." });
  const given = { ...(replicas === undefined ? {} : { replicas }), ...(overlap === undefined ? {} : { overlap }) };
  const saved = await queries.saveSetting(ctx.tx, { ...ctx.project.key, process, ...given });
  return { replicas: saved.replicas ?? 1, overlap: saved.overlap };
}

/** Restarts everything as a new deployment of the same image: its switch loses no request, and if it fails, everything stays as it is. */
async function restartAll(ctx: Context<"processes.restart">) {
  const made = await restartDeployment(ctx.platform, ctx.tx, ctx.project.key, "restart");
  switch (made.outcome) {
    case "project_deleted":
    case "org_suspended":
      return ctx.fail(made.outcome);
    case "in_progress":
      return ctx.fail("deploy_in_progress");
    case "nothing":
      return ctx.fail("nothing_to_deploy", { error: "The project has no active deployment, so nothing runs." });
    case "made":
      return {
        outcome: async (signal: AbortSignal) => {
          const deployment = await deploymentOutcome(ctx, made.id, { signal, unhealthy: "restart_failed" });
          return { status: "restarted" as const, deployment };
        },
      };
  }
}

/** Restarts replicas in place, one after another; this type receives no requests that could be lost. */
async function restartType(ctx: Context<"processes.restart">, type: Type) {
  const { deployment_id, process } = type;
  await queries.requestRestart(ctx.tx, { ...ctx.project.key, process });
  await ctx.platform.wakeups.send(ctx.tx, "apps", ctx.project.id);
  const outcome = (signal: AbortSignal) =>
    awaitOutcome(ctx.platform.wakeups, { id: workloadId(type), signal }, async () => {
      const { active, pending, crashed } = await queries.restartState(ctx.platform.db, { deployment_id, process });
      if (!active)
        return ctx.fail("restart_failed", {
          error: "Another deployment went live before the processes had restarted.",
          hint: "Its processes are new; restart them only if you still need to.",
        });
      if (crashed > 0)
        return ctx.fail("restart_failed", {
          error: `The process ${process} exited while it started. Berth keeps trying, with growing pauses.`,
          hint: "`berth logs` shows its last lines. The other replicas keep running.",
        });
      return pending === 0 ? { status: "restarted" as const, deployment: null } : undefined;
    });
  return { outcome };
}
