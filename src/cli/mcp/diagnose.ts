import { ApiError, type Answer } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { usageError } from "../failures.ts";
import { diagnosis, type Finding, type ProjectState } from "./diagnosis.ts";
import { fit, lastLines } from "./fit.ts";
import type { ToolAnswer } from "./present.ts";
import type { Session } from "./session.ts";
import { inToolWords } from "./in-tool-words.ts";
import { untrusted, untrustedNotice, visibleIn, visibleLines } from "./untrusted.ts";

const tailLines = 60;
const tailCharacters = 8000;

/** Gathers a project's state, and says the likely cause of its trouble and the next step. What cannot be read is named and left out. */
export async function diagnose(session: Session, slug: string | undefined): Promise<ToolAnswer> {
  if (slug === undefined) throw usageError("Which project?", "Name it with slug.");
  const { state, unread } = await session.working("looking at the project", () => gather(session, slug));
  const findings = diagnosis(state, new Date());
  const { text, notes, document } = fit(visibleIn(reported(state, findings), 2000), 24_000);
  const report = [untrusted("the platform's state of the project", text), ...notes].join("\n");
  const parts = [verdict(findings), hintOf(findings), report, logTail(state), missing(unread)];
  return {
    text: parts.filter((part) => part !== "").join("\n\n"),
    structured: { notice: untrustedNotice, result: document, notes },
    isError: false,
  };
}

interface Gathered {
  readonly state: ProjectState;
  /** What could not be read, and the error's code. */
  readonly unread: readonly string[];
}

async function gather({ client, confinement, signal }: Session, slug: string): Promise<Gathered> {
  const params = { slug };
  const { route } = await import("../../contract/routes.ts");
  await confinement.check(route("projects.get"), params);
  const project = await client.call("projects.get", { params, signal });
  const unread: string[] = [];
  const read = async <N extends RouteName>(
    name: N,
    query: Record<string, string | number> = {},
  ): Promise<Answer<N> | null> => {
    try {
      return (await client.send(route(name), { params, query, signal })) as Answer<N>;
    } catch (fault) {
      if (!(fault instanceof ApiError)) throw fault;
      // What a project doesn't have is no gap in what is known of it.
      if (!["no_database", "project_deleted"].includes(fault.code)) unread.push(`${name} (${fault.code})`);
      return null;
    }
  };
  const [deployments, builds, runtimeLog, domains] = await Promise.all([
    read("deployments.list"),
    read("builds.list"),
    read("logs.list", { limit: tailLines }),
    read("domains.list"),
  ]);
  // What never ran has only the log of its build.
  const logs =
    runtimeLog?.lines.length === 0 ? await read("logs.list", { limit: tailLines, source: "build" }) : runtimeLog;
  const [metrics, timeline, cron, database, backups] = await Promise.all([
    read("metrics.get", { range: "1h" }),
    read("timeline.list", { limit: 50 }),
    read("cron.list"),
    read("database.get"),
    read("backups.list"),
  ]);
  return { state: { project, deployments, builds, logs, domains, metrics, timeline, cron, database, backups }, unread };
}

function verdict(findings: readonly Finding[]): string {
  const [first] = findings;
  if (first === undefined) return "Nothing is wrong that can be seen from here.";
  const step = first.next.tool === null ? "" : ` Call ${first.next.tool} with ${JSON.stringify(first.next.arguments)}.`;
  const others = findings.length === 1 ? "" : ` ${findings.length - 1} more below.`;
  return `Likely cause: ${first.code} (${first.severity}). Next step: ${first.next.text}${step}${others}`;
}

/** What the platform says of the first failure: before everything else, because it says what helps. */
function hintOf([first]: readonly Finding[]): string {
  if (first?.failure === undefined || first.failure === null) return "";
  const { summary, hint } = first.failure;
  return untrusted(
    "the platform, which may quote a command's output",
    visibleLines(`${summary} ${inToolWords(hint)}`, 2000),
  );
}

function reported(
  { project, deployments, builds, domains, metrics, database, backups }: ProjectState,
  findings: readonly Finding[],
) {
  const { from: _, to: __, buckets: ___, deployments: markers, ...traffic } = metrics ?? {};
  return {
    findings: findings.map(({ failure: _failure, ...finding }) => finding),
    project,
    deployments: deployments?.deployments.slice(0, 3),
    builds: builds?.builds.slice(0, 3),
    domains: domains?.domains.map(({ hostname, dns_status, ssl_status, serving }) => ({
      hostname,
      dns_status,
      ssl_status,
      serving,
    })),
    last_hour: {
      ...traffic,
      went_live: markers,
      replicas: metrics?.replicas.map(({ buckets: ____, ...replica }) => replica),
    },
    database,
    last_backup: backups?.backups[0],
  };
}

function logTail({ logs }: ProjectState): string {
  if (logs === null || logs.lines.length === 0) return "";
  const lines = logs.lines.map((line) => `${line.at ?? ""} ${visibleLines(line.text, 500)}`.trim());
  const whose = logs.source === "build" ? "the newest build's log" : "the application's log";
  return untrusted(`${whose}, its newest lines`, lastLines(lines.join("\n"), tailCharacters).text);
}

function missing(unread: readonly string[]): string {
  return unread.length === 0
    ? ""
    : `Not looked at, because this token may not or the platform could not: ${unread.join(", ")}.`;
}
