import type { Answer } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { Refused, type Context, type Handlers } from "../context.ts";
import { diagnosis as findings, type ProjectState } from "./rules.ts";

const tailLines = 60;
const tailLineCharacters = 2000;

export const diagnosis: Handlers<"diagnosis"> = {
  async get(ctx, { params }) {
    const project = await ctx.read("projects.get", { params });
    const { state, unread } = await gather(ctx, project);
    const { source, lines } = state.logs ?? { source: "runtime" as const, lines: [] };
    return {
      findings: [...findings(state, ctx.now)],
      project,
      deployment: state.deployments?.deployments[0] ?? null,
      build: state.builds?.builds[0] ?? null,
      log: { source, lines: lines.map(({ at, text }) => ({ at, text: text.slice(0, tailLineCharacters) })) },
      unread,
    };
  },
};

type Ctx = Context<"diagnosis.get">;
type Gathered = { state: ProjectState; unread: { route: string; code: string }[] };

/** Reads what the caller may read of the project; lists the rest in `unread`. */
async function gather(ctx: Ctx, project: ProjectState["project"]): Promise<Gathered> {
  const unread: Gathered["unread"] = [];
  const read = async <N extends RouteName>(name: N, query: Readonly<Record<string, string>> = {}) => {
    try {
      return await ctx.read(name, { params: { slug: project.slug }, query });
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      // `unread` lists what could not be read, not what the project doesn't have.
      if (!["no_database", "project_deleted"].includes(fault.code)) unread.push({ route: name, code: fault.code });
      return null;
    }
  };
  const [deployments, builds, runtimeLog, domains] = await Promise.all([
    read("deployments.list"),
    read("builds.list"),
    read("logs.list", { limit: String(tailLines) }),
    read("domains.list"),
  ]);
  const [metrics, timeline, cron, database, backups] = await Promise.all([
    read("metrics.get", { range: "1h" }),
    read("timeline.list", { limit: "50" }),
    read("cron.list"),
    read("database.get"),
    read("backups.list"),
  ]);
  const logs = await orBuildLog(runtimeLog, () => read("logs.list", { limit: String(tailLines), source: "build" }));
  return { state: { project, deployments, builds, logs, domains, metrics, timeline, cron, database, backups }, unread };
}

type Logs = Answer<"logs.list"> | null;

/** A project that never ran has only the log of its build. */
async function orBuildLog(runtime: Logs, buildLog: () => Promise<Logs>): Promise<Logs> {
  return runtime?.lines.length === 0 ? buildLog() : runtime;
}
