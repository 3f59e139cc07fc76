import type { Command } from "commander";
import type { Answer, Client } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand, listCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { wholeNumber } from "../input.ts";
import { afterRestart } from "../../client/outcomes.ts";
import { withProgress } from "../render/progress.ts";
import { oneLine, relativeTime } from "../render/text.ts";

export function addProcesses(program: Command, ctx: CliContext): void {
  addList(program, ctx);
  addScale(program, ctx);
  addRestart(program, ctx);
}

type Process = Answer<"processes.list">["processes"][number];

const addList = listCommand({
  row: "processes.list",
  usage: "ps",
  summary: "List the process types and what runs of each",
  examples: ["berth ps", "berth ps -p demo --json"],
  items: ({ processes }) => processes.flatMap(replicasOf),
  columns: {
    PROCESS: ({ type, replicas, replica }) =>
      replica === undefined ? `${type} (${replicas})` : `${type}.${replica.replica}`,
    STATE: ({ replicas, replica }, paint) => {
      if (replica === undefined) return replicas === 0 ? "off" : "none";
      return replica.state === "up" ? paint.green("up") : paint.yellow(replica.state);
    },
    SINCE: ({ replica }) => (replica === undefined ? "" : relativeTime(replica.since)),
    DEPLOYMENT: ({ replica }) => (replica === undefined ? "" : `#${replica.deployment}`),
    MEMORY: ({ replica }) =>
      replica === undefined ? "" : replica.memory_bytes === null ? "-" : bytesText(replica.memory_bytes),
    CPU: ({ replica }) => (replica === undefined ? "" : String(replica.cpus ?? "-")),
    RESTARTS: ({ replica }) => String(replica?.restarts ?? ""),
    COMMAND: ({ command }) => oneLine(command).slice(0, 60),
  },
  empty: "Nothing was deployed yet: push with git.",
});

/** Returns each running replica of a type, or the type alone if none runs. */
function replicasOf(process: Process) {
  const running = process.running.length === 0 ? [undefined] : process.running;
  return running.map((replica) => ({ ...process, replica }));
}

interface ScaleOptions {
  org?: string;
  overlap?: boolean;
}

function addScale(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "scale <replicas...>",
    summary: "Set how many replicas run, of web or of each type (for the platform's operator)",
    examples: [
      "berth scale 3",
      "berth scale web=2 worker=1",
      "berth scale worker=0",
      "berth scale 2 -p shop --org acme",
    ],
  })
    .option("--org <slug>", "the organization of the project; by default your own. Only for web")
    .option("--overlap", "a deploy starts new replicas of the named types beside the old ones")
    .option("--no-overlap", "a deploy stops the old replicas of the named types first (the default)")
    .action(async (given: string[], options: ScaleOptions) => {
      const wanted = given.map(parseScale);
      if (options.org !== undefined && wanted.some(({ type }) => type !== "web"))
        throw usageError("--org sets the replicas of web alone.");
      const { slug, client } = await openProject(ctx);
      const set: { type: string; replicas: number }[] = [];
      for (const each of wanted) set.push(await scale(client, slug, { ...each, ...options }));
      const document =
        given.length === 1 && wanted[0]?.isPlain === true ? { replicas: set[0]?.replicas } : { processes: set };
      ctx.output.result(document, () => set.map((each) => sentence(slug, each)).join("\n"));
    });
}

type Scale = ReturnType<typeof parseScale>;

/** Parses `web=3`; `3` alone means `web=3`. */
function parseScale(text: string) {
  const parts = text.split("=");
  const [type, count] = parts.length === 1 ? ["web", parts[0]] : [parts[0], parts.slice(1).join("=")];
  const least = type === "web" ? 1 : 0;
  return {
    type: type as string,
    replicas: wholeNumber(count ?? "", "NUMBER in TYPE=NUMBER, such as web=2,", { least, most: 8 }),
    /** Whether only a number was given, which means web. */
    isPlain: parts.length === 1,
  };
}

async function scale(client: Client, slug: string, { type, replicas, org, overlap }: Scale & ScaleOptions) {
  if (type !== "web") return client.call("processes.set", { params: { slug, type }, body: { replicas, overlap } });
  const body = { replicas };
  const set =
    org === undefined
      ? await client.call("deployments.scale", { params: { slug }, body })
      : await client.call("orgs.scale", { params: { org, slug }, body });
  return { type, ...set };
}

function sentence(slug: string, { type, replicas }: { type: string; replicas: number }): string {
  const count = `${replicas} ${replicas === 1 ? "replica" : "replicas"}`;
  return type === "web" ? `${slug} runs with ${count}.` : `${slug} runs with ${count} of ${type}.`;
}

function addRestart(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "restart [type]",
    summary: "Restart all processes, or those of one type, without losing a request",
    examples: ["berth restart", "berth restart worker", "berth restart -p demo --json"],
  }).action(async (type: string | undefined) => {
    const { slug, client } = await openProject(ctx);
    const { signal } = ctx;
    const document = await withProgress(ctx, `Restarting ${type ?? slug}`, (say) =>
      afterRestart({ client, signal, say }, slug, () =>
        client.call("processes.restart", { params: { slug }, body: { type }, signal }),
      ),
    );
    const number = document.deployment?.number;
    ctx.output.result(
      document,
      (paint) =>
        `${paint.green("Restarted:")} ${type ?? slug}${number === undefined ? "" : `, as deployment #${number}`}`,
    );
  });
}
