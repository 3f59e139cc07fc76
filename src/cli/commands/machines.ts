import type { Command } from "commander";
import type { z } from "zod";
import type { Answer } from "../../contract/client.ts";
import type { dryRun } from "../../contract/dry-run.ts";
import { route } from "../../contract/routes.ts";
import { addCommand, commandGroup, listCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { confirm } from "../prompts.ts";
import { counted, bytesText } from "../../kit/bytes-text.ts";
import { paintStatus, oneLine } from "../render/text.ts";

type Machine = Answer<"platform.machines">["machines"][number];

export const addMachines = commandGroup({
  name: "machines",
  summary: "List, add, drain and remove machines of a swarm (for the platform's operator)",
  commands: () => [
    listCommand({
      row: "platform.machines",
      usage: "list",
      summary: "List the machines that replicas run on",
      isDefault: true,
      examples: ["berth machines", "berth machines list --json"],
      items: (answer) => answer.machines,
      columns: {
        NAME: ({ name }) => oneLine(name),
        ADDRESS: ({ address }) => address,
        ROLE: ({ role }) => role,
        STATE: (machine, paint) => paintStatus(paint, stateOf(machine)),
        REPLICAS: ({ replicas }) => String(replicas),
        CPUS: ({ cpus }) => String(cpus),
        MEMORY: ({ memory_bytes: bytes }) => bytesText(bytes),
        ENGINE: ({ version }) => oneLine(version),
      },
      empty:
        "Everything runs on one machine. With BERTH_RUNTIME=swarm, replicas run on the machines of a Docker Swarm.",
    }),
    addJoin,
    (machines, ctx) => addChange(machines, ctx, true),
    (machines, ctx) => addChange(machines, ctx, false),
    addRemove,
  ],
});

function stateOf({ state, takes_replicas, guarded }: Machine): string {
  if (state !== "ready") return state;
  if (!takes_replicas) return "drained";
  return guarded ? "ready" : "not guarded";
}

function addJoin(machines: Command, ctx: CliContext): void {
  addCommand(machines, {
    usage: "join",
    summary: "Print the script that joins another machine to the swarm; it contains secrets",
    examples: ["berth machines join | ssh root@192.0.2.11 sh"],
  }).action(async () => {
    const client = await ctx.client();
    const answer = await client.call("platform.join", {});
    ctx.output.result(answer, () => answer.script?.trimEnd() ?? "");
  });
}

function addChange(machines: Command, ctx: CliContext, takes_replicas: boolean): void {
  const [name, summary] = takes_replicas
    ? ["use", "Let new replicas start on a drained machine again"]
    : ["drain", "Drain a machine: its replicas start on others, then end there; it gets no new ones"];
  addCommand(machines, {
    usage: `${name} <machine>`,
    summary,
    examples: [`berth machines ${name} node-2`],
  }).action(async (given: string) => {
    const client = await ctx.client();
    const machine = await machineNamed(client, given);
    const answer = await client.call("platform.drain", { params: { machine: machine.id }, body: { takes_replicas } });
    const moving = answer.moving === 0 ? "" : ` Restarting on other machines: ${counted(answer.moving, "project")}.`;
    ctx.output.result(answer, () =>
      takes_replicas
        ? `${oneLine(machine.name)} takes replicas again.`
        : `${oneLine(machine.name)} is drained.${moving} \`berth machines\` shows how many replicas are left.`,
    );
  });
}

function addRemove(machines: Command, ctx: CliContext): void {
  addCommand(machines, {
    usage: "remove <machine>",
    summary: "Remove a drained or lost machine from the swarm",
    examples: ["berth machines remove node-2"],
  })
    .option("-y, --yes", "don't ask")
    .action(async (given: string, options: { yes?: boolean }) => {
      const client = await ctx.client();
      const { id, name, address } = await machineNamed(client, given);
      const params = { machine: id };
      const said = await client.send(route("platform.dismiss"), { params, query: { dry_run: true } });
      const left = projectsIn(said as z.output<typeof dryRun>);
      const what = `This removes ${oneLine(name)} (${address}) from the swarm. ${left}`;
      await confirm(ctx, what, { name: oneLine(name), yes: options.yes });
      await client.call("platform.dismiss", { params });
      ctx.output.result(
        {},
        () =>
          `${oneLine(name)} is removed. Run \`docker swarm leave\` on that machine, so that it leaves the swarm, too.`,
      );
    });
}

/** Describes the affected projects. Only a lost machine still has replicas; a reachable one must be drained first. */
function projectsIn({ would_change: change }: z.output<typeof dryRun>): string {
  const { projects = [] } = (change?.detail ?? {}) as { readonly projects?: readonly string[] };
  if (projects.length === 0) return "Nothing runs there, and no storage is bound to it.";
  return `No storage is bound to it. Replicas that it still had start on other machines: ${oneLine(projects.join(", "))}.`;
}

/** Finds a machine by name, address or, because names may repeat, the beginning of its id. */
async function machineNamed(client: Awaited<ReturnType<CliContext["client"]>>, given: string): Promise<Machine> {
  const { machines } = await client.call("platform.machines", {});
  const exact = machines.filter(({ name, address, id }) => [name, address, id].includes(given));
  const found = exact.length > 0 ? exact : machines.filter(({ id }) => id.startsWith(given));
  if (found.length === 1) return found[0] as Machine;
  const what = found.length === 0 ? `There is no machine ${given}.` : `Several machines are called ${given}.`;
  throw new CliError(found.length === 0 ? "notFound" : "usage", "no_such_machine", {
    message: what,
    hint: "`berth machines --json` lists names, addresses and ids.",
  });
}
