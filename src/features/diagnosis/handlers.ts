import type { RouteName } from "../../contract/routes.ts";
import { Refused, type Context, type Handlers } from "../context.ts";
import { diagnosis as findings, type ProjectState } from "./rules.ts";

const tailLines = 60;
const tailLineCharacters = 2000;
/** How far back the requests of single paths count. */
const pathsMs = 15 * 60_000;

export const diagnosis: Handlers<"diagnosis"> = {
  async get(ctx) {
    const { state, unread, readLog } = await gather(ctx);
    const found = findings(state);
    // A build's log is what matters when a release command failed, and the only one of a project that never ran.
    const isOfBuild = found[0]?.next?.route === "builds.logs";
    const runtime = isOfBuild ? null : await readLog("runtime");
    const log = runtime === null || runtime.lines.length === 0 ? await readLog("build") : runtime;
    const { source, lines } = log ?? { source: "runtime" as const, lines: [] };
    return {
      findings: [...found],
      project: state.project,
      deployment: state.deployments?.deployments[0] ?? null,
      build: state.builds?.builds[0] ?? null,
      log: { source, lines: lines.map(({ at, text }) => ({ at, text: text.slice(0, tailLineCharacters) })) },
      unread,
    };
  },
};

/** Reads what the caller may read of the project; lists the rest in `unread`. */
async function gather(ctx: Context<"diagnosis.get">) {
  const unread: { route: string; code: string }[] = [];
  const { slug } = ctx.project;
  const read = async <N extends RouteName>(name: N, query: Readonly<Record<string, string>> = {}) => {
    try {
      return await ctx.read(name, { params: { slug }, query });
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      // `unread` lists what could not be read, not what the project doesn't have.
      const isKnown = fault.code === "no_database" || unread.some(({ route }) => route === name);
      if (!isKnown) unread.push({ route: name, code: fault.code });
      return null;
    }
  };
  const [project, deployments, builds, domains] = await Promise.all([
    ctx.read("projects.get", { params: { slug } }),
    read("deployments.list"),
    read("builds.list"),
    read("domains.list"),
  ]);
  // What went wrong before the active deployment was mended by it.
  const live = project.active_deployment?.activated_at ?? null;
  const since =
    live !== null && ctx.now.getTime() - Date.parse(live) < pathsMs
      ? live
      : new Date(ctx.now.getTime() - pathsMs).toISOString();
  const paths = (sort: "errors" | "slow") => read("requests.paths", { since, sort });
  const [cron, database, backups, archive, failing, slow] = await Promise.all([
    read("cron.list"),
    read("database.get"),
    read("backups.list"),
    read("backups.archive"),
    paths("errors"),
    paths("slow"),
  ]);
  const state: ProjectState = {
    project,
    deployments,
    builds,
    domains,
    cron,
    database,
    backups,
    archive,
    failing,
    slow,
    pathsSince: since,
  };
  const readLog = (source: "build" | "runtime") => read("logs.list", { limit: String(tailLines), source });
  return { state, unread, readLog };
}
