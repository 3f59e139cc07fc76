import type { Result } from "../../contract/routes.ts";
import type { MachinePool } from "../../ports/machines.ts";
import type { Context } from "../context.ts";
import { markVariablesChanged } from "../env/env.ts";
import * as queries from "./queries.ts";

export async function showMachines({ platform }: Context<"platform.machines">): Promise<Result<"platform.machines">> {
  return { machines: [...((await platform.ports.runtime.machines?.list()) ?? [])] };
}

export async function joinMachine(ctx: Context<"platform.join">): Promise<Result<"platform.join">> {
  return { script: await poolOf(ctx).joinScript() };
}

/**
 * A machine that takes no new replicas keeps those that it has; each project with one of them is started anew, health-checked as a
 * deployment is, and so leaves it without a lost request.
 */
export async function admitMachine(
  ctx: Context<"platform.drain">,
  id: string,
  takesReplicas: boolean,
): Promise<Result<"platform.drain">> {
  const pool = poolOf(ctx);
  const { name } = await machineOf(ctx, pool, id);
  if (!(await pool.admit(id, takesReplicas))) return ctx.fail("not_found");
  const projects = takesReplicas ? [] : await queries.projectKeys(ctx.tx, await pool.projectsOn(id));
  for (const project of projects) await markVariablesChanged(ctx.platform.wakeups, ctx.tx, project);
  ctx.note({ target: name, detail: { takes_replicas: takesReplicas } });
  return { moving: projects.length };
}

export async function removeMachine(ctx: Context<"platform.dismiss">, id: string): Promise<undefined> {
  const pool = poolOf(ctx);
  const { name, replicas, state, takes_replicas, role } = await machineOf(ctx, pool, id);
  if (role === "manager")
    return ctx.fail("conflict", {
      error: `${name} manages the swarm.`,
      hint: "`docker node demote` makes it a worker; the machine that Berth runs beside stays a manager.",
    });
  if (state === "ready" && (takes_replicas || replicas > 0))
    return ctx.fail("conflict", {
      error: `${name} is not drained: ${replicas} replicas are on it.`,
      hint: "Drain it first, and wait until `berth machines` shows no replicas on it.",
    });
  await pool.remove(id);
  ctx.note({ target: name });
  return undefined;
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
