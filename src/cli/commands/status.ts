import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { isGood } from "../../contract/status.ts";
import { addCommand } from "../command-tree.ts";
import { namedProject, type CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { paintStatus, table, facts, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { counted } from "../../kit/bytes-text.ts";
import { firstPush } from "../../contract/first-push.ts";
import { healthText, maintenanceText } from "./projects.ts";

export function addStatus(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "status",
    summary:
      "Show the project's state; outside of a project, or with --platform, the platform's checks (for the platform's operator)",
    examples: [
      "berth status",
      "berth status -p shop",
      "berth status --platform --bad",
      "berth status --platform --json",
    ],
  })
    .option("--platform", "the platform's checks; exit code 9 when one fails")
    .option("--bad", "only the platform's checks that are not ok")
    .action(async (options: { platform?: boolean; bad?: boolean }) => {
      const slug = options.platform === true || options.bad === true ? undefined : await namedProject(ctx);
      if (slug !== undefined) return showProjectStatus(ctx, slug);
      const document = await (await ctx.client()).call("status.get");
      ctx.output.result(document, (paint) => describe(paint, document, options.bad === true));
      const failing = new Set(document.checks.filter(({ status }) => status === "fail").map(({ check }) => check)).size;
      if (document.status !== "fail") return;
      throw new CliError("checkFailed", "check_failed", {
        message: failing === 1 ? "One check fails." : `${failing} checks fail.`,
        hint: "`berth alerts` shows the alerts that were sent to the operator.",
      });
    });
}

type Status = Answer<"status.get">;

function describe(paint: Paint, { status, checked_at, open_alerts, checks }: Status, badOnly: boolean): string {
  // The row about a check as a whole only counts those of its subjects.
  const subjects = new Set(checks.flatMap(({ check, subject }) => (subject === null ? [] : [check])));
  const named = checks.filter(({ check, subject }) => subject !== null || !subjects.has(check));
  const shown = badOnly ? named.filter((check) => !isGood(check.status)) : named;
  const rows = shown.map((check) => [
    paintStatus(paint, check.status),
    [check.check, check.subject].filter((part) => part !== null).join(" "),
    check.machine ?? "",
    relativeTime(check.since),
    oneLine(check.detail, 120),
  ]);
  const hints = shown.filter((check) => !isGood(check.status) && check.hint !== null);
  const head = `The platform: ${paintStatus(paint, status)}, ${counted(open_alerts, "open alert")}, checked ${relativeTime(checked_at)}.`;
  const parts = [head, table(paint, ["STATUS", "CHECK", "MACHINE", "SINCE", "DETAIL"], rows, "Everything is ok.")];
  const helps = hints.map(
    (check) => `${check.check}${check.subject === null ? "" : ` ${check.subject}`}: ${oneLine(check.hint ?? "")}`,
  );
  return [...parts, ...(helps.length === 0 ? [] : [helps.join("\n")])].join("\n\n");
}

type Overview = Answer<"overview.get">["projects"][number];
type Processes = Answer<"processes.list">;

/** Prints a project's address, deployment, processes, traffic, and what needs attention. */
async function showProjectStatus(ctx: CliContext, given: string): Promise<void> {
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
