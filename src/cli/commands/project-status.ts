import { firstPush } from "../../contract/first-push.ts";
import type { Answer } from "../../contract/client.ts";
import { counted } from "../../kit/counted.ts";
import type { CliContext } from "../context.ts";
import type { Paint } from "../render/paint.ts";
import { paintStatus } from "../render/paint.ts";
import { facts, table } from "../render/table.ts";
import { oneLine, relativeTime } from "../render/text.ts";
import { healthText, maintenanceText } from "./projects.ts";

type Overview = Answer<"overview.get">["projects"][number];
type Processes = Answer<"processes.list">;

/** Prints a project's address, deployment, processes, traffic, and what needs attention. */
export async function showProjectStatus(ctx: CliContext, given: string): Promise<void> {
  const client = await ctx.client();
  const project = await client.call("projects.get", { params: { slug: given } });
  const { slug } = project;
  const isActive = project.state === "active";
  const seen = isActive ? await client.call("overview.get") : { projects: [], previews: [] };
  const overview = [...seen.projects, ...seen.previews].find(({ id }) => id === project.id);
  const processes = isActive ? await client.call("processes.list", { params: { slug } }) : { processes: [] };
  ctx.output.result({ project, overview: overview ?? null, ...processes }, (paint) =>
    [
      facts(paint, [
        ["project", paint.bold(slug)],
        ["health", healthText(paint, project)],
        ["next", project.health?.next?.advice ?? null],
        ["maintenance", maintenanceText(project)],
        ["url", project.url],
        ...(overview === undefined ? [] : factsOf(paint, overview)),
      ]),
      ...(processes.processes.length === 0 ? [] : [processTable(paint, processes)]),
    ].join("\n\n"),
  );
}

/** What the health's sentence says already. */
const partsOfHealth: readonly string[] = ["crashing", "replicas_missing", "maintenance"];

function factsOf(paint: Paint, overview: Overview): [string, string | null][] {
  const { active_deployment: active, last_deployment: last, last_hour: hour, last_backup: backup } = overview;
  const others = overview.attention.filter((reason) => !partsOfHealth.includes(reason));
  const attention = others.map((reason) => reason.replaceAll("_", " ")).join(", ");
  return [
    [
      "deployment",
      active === null
        ? `none: \`${firstPush}\` makes the first`
        : `#${active.number}, since ${relativeTime(active.at)}: ${oneLine(active.message, 60)}`,
    ],
    [
      "last one",
      last === null || last.id === active?.id
        ? null
        : `#${last.number}, ${paintStatus(paint, last.status)} ${relativeTime(last.at)}`,
    ],
    ["last hour", `${counted(hour.requests, "request")}, ${counted(hour.errors, "error")}`],
    ["database", overview.database === null ? "none" : paintStatus(paint, overview.database)],
    ["backup", backup === null ? null : `${paintStatus(paint, backup.status)} ${relativeTime(backup.at)}`],
    ["attention", attention === "" ? null : `${paint.yellow(attention)}: \`berth diagnose\` shows the details`],
  ];
}

function processTable(paint: Paint, { processes }: Processes): string {
  const rows = processes.map(({ type, replicas, running }) => {
    const up = running.filter(({ state }) => state === "up").length;
    const restarts = running.reduce((sum, replica) => sum + replica.restarts, 0);
    return [type, up < replicas ? paint.red(`${up}/${replicas}`) : `${up}/${replicas}`, String(restarts)];
  });
  return table(paint, ["PROCESS", "UP", "RESTARTS"], rows, "");
}
