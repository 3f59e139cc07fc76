import type { Result } from "../../contract/routes.ts";
import type { MachinePool } from "../../ports/machines.ts";
import type { Context, Waiting } from "../context.ts";
import { markVariablesChanged } from "../env/env.ts";
import * as queries from "./queries.ts";

export async function showMachines({ platform }: Context<"platform.machines">): Promise<Result<"platform.machines">> {
  return { machines: [...((await platform.ports.runtime.machines?.list()) ?? [])] };
}

export async function joinMachine(ctx: Context<"platform.join">): Promise<Result<"platform.join">> {
  return { script: await poolOf(ctx).joinScript() };
}

/**
 * Sets whether a machine accepts new replicas. A draining machine keeps its replicas until each of their projects is restarted,
 * health-checked like a deployment, so no request is lost.
 */
export async function admitMachine(
  ctx: Context<"platform.drain">,
  id: string,
  takesReplicas: boolean,
): Promise<Waiting<Result<"platform.drain">>> {
  const pool = poolOf(ctx);
  const { name } = await machineOf(ctx, pool, id);
  const { db, wakeups } = ctx.platform;
  ctx.note({ target: name, resource: id, detail: { takes_replicas: takesReplicas } });
  const outcome = async () => {
    if (!(await pool.admit(id, takesReplicas))) return ctx.fail("not_found");
    const ids = takesReplicas ? [] : await pool.projectsOn(id);
    const projects = await queries.projectsNamed(db, ids);
    await db.transaction().execute(async (tx) => {
      for (const project of projects) await markVariablesChanged(wakeups, tx, project);
    });
    return { moving: projects.length };
  };
  return { changesLate: true, outcome };
}

/** Removes a machine. A dry run and the approval show which projects the swarm still counts on it. */
export async function removeMachine(ctx: Context<"platform.dismiss">, id: string): Promise<Waiting<undefined>> {
  const pool = poolOf(ctx);
  const { name, replicas, state, takes_replicas, role } = await machineOf(ctx, pool, id);
  if (role === "manager")
    return ctx.fail("conflict", {
      error: `${name} is a manager of the swarm, so it cannot be removed.`,
      hint: "`docker node demote` makes it a worker. The machine that Berth itself uses must stay a manager.",
    });
  if (state === "ready" && (takes_replicas || replicas > 0))
    return ctx.fail("conflict", {
      error: `${name} is not drained: ${replicas} replicas run on it.`,
      hint: "Drain it first, and wait until `berth machines` shows no replicas on it.",
    });
  const projects = await queries.projectsNamed(ctx.tx, await pool.projectsOn(id));
  const detail = { state, replicas, projects: projects.map((each) => `${each.org}/${each.slug}`) };
  ctx.note({ target: name, resource: id, detail });
  return { changesLate: true, outcome: async () => void (await pool.remove(id)) };
}

type Changing = Context<"platform.join"> | Context<"platform.drain"> | Context<"platform.dismiss">;

function poolOf(ctx: Changing): MachinePool {
  const oneMachine = {
    error: "This platform runs applications on one machine.",
    hint: "With the setting BERTH_RUNTIME=swarm it runs them on the machines of a Docker Swarm.",
  };
  return ctx.platform.ports.runtime.machines ?? ctx.fail("conflict", oneMachine);
}

async function machineOf(ctx: Changing, pool: MachinePool, id: string) {
  return (await pool.list()).find((machine) => machine.id === id) ?? ctx.fail("not_found");
}
