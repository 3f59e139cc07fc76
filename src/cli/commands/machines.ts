import type { z } from "zod";
import type { Answer, Client } from "../../contract/client.ts";
import type { dryRun } from "../../contract/dry-run.ts";
import { route } from "../../contract/routes.ts";
import { actCommand, commandGroup, listCommand, rowCommand } from "../command-tree.ts";
import { CliError } from "../failures.ts";
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
    changes("use", "Let new replicas start on a drained machine again"),
    changes("drain", "Drain a machine: its replicas start on others, then end there; it gets no new ones"),
    addRemove,
  ],
});

function stateOf({ state, takes_replicas, guarded }: Machine): string {
  if (state !== "ready") return state;
  if (!takes_replicas) return "drained";
  return guarded ? "ready" : "not guarded";
}

const addJoin = rowCommand({
  row: "platform.join",
  usage: "join",
  summary: "Print the script that joins another machine to the swarm; it contains secrets",
  examples: ["berth machines join | ssh root@192.0.2.11 sh"],
  text: ({ script }) => script?.trimEnd() ?? "",
});

const changes = (verb: "use" | "drain", summary: string) =>
  rowCommand({
    row: "platform.drain",
    usage: `${verb} <name>`,
    summary,
    examples: [`berth machines ${verb} node-2`],
    find: async (client, given) => {
      const found = await machineNamed(client, given);
      return { ...found, machine: found.id };
    },
    input: () => ({ body: { takes_replicas: verb === "use" } }),
    text: ({ moving }, _paint, { thing: { name } }) => {
      if (verb === "use") return `${oneLine(name)} takes replicas again.`;
      const restarts = moving === 0 ? "" : ` Restarting on other machines: ${counted(moving, "project")}.`;
      return `${oneLine(name)} is drained.${restarts} \`berth machines\` shows how many replicas are left.`;
    },
  });

const addRemove = actCommand({
  row: "platform.dismiss",
  usage: "remove <name>",
  summary: "Remove a drained or lost machine from the swarm",
  examples: ["berth machines remove node-2"],
  find: async (client, given) => {
    const found = await machineNamed(client, given);
    const params = { machine: found.id };
    const said = await client.send(route("platform.dismiss"), { params, query: { dry_run: true } });
    return { ...found, ...params, left: projectsIn(said as z.output<typeof dryRun>) };
  },
  warning: ({ thing: { name, address, left } }) => `This removes ${oneLine(name)} (${address}) from the swarm. ${left}`,
  text: (_, _paint, { thing: { name } }) =>
    `${oneLine(name)} is removed. Run \`docker swarm leave\` on that machine, so that it leaves the swarm, too.`,
});

/** Describes the affected projects. Only a lost machine still has replicas; a reachable one must be drained first. */
function projectsIn({ would_change: change }: z.output<typeof dryRun>): string {
  const { projects = [] } = (change?.detail ?? {}) as { readonly projects?: readonly string[] };
  if (projects.length === 0) return "Nothing runs there, and no storage is bound to it.";
  return `No storage is bound to it. Replicas that it still had start on other machines: ${oneLine(projects.join(", "))}.`;
}

/** Finds a machine by name, address or, because names may repeat, the beginning of its id. */
async function machineNamed(client: Client, given: string): Promise<Machine> {
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
