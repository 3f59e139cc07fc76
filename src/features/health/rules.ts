import type { Health } from "../../contract/health.ts";
import { route, type RouteName } from "../../contract/routes.ts";
import type { NextCall } from "../../contract/errors.ts";
import { counted } from "../../kit/bytes-text.ts";
import type { HealthFacts } from "./queries.ts";

type Verdict = Pick<Health, "state" | "code" | "sentence" | "next"> & Partial<Pick<Health, "since" | "seen">>;

/** Returns a project's health; null if it is deleted. The first rule that applies is the one that explains most. */
export function healthOf(facts: HealthFacts, now: Date): Health | null {
  if (facts.deleted) return null;
  for (const rule of rules) {
    const found = rule(facts, now);
    if (found === undefined) continue;
    const rollback = facts.back_to === null ? null : { to: facts.back_to, after_release: facts.released_since };
    const since = found.since ?? (found.state === facts.state ? facts.since : null);
    // Times inside JSON have PostgreSQL's own form.
    return { seen: {}, ...found, since: since === null ? null : new Date(since).toISOString(), rollback };
  }
  throw new Error("every project has a health");
}

type Rule = (facts: HealthFacts, now: Date) => Verdict | undefined;

const inMaintenance: Rule = ({ slug, maintenance_since: since }) =>
  since === null
    ? undefined
    : {
        ...{ state: "maintenance", code: "maintenance", since },
        sentence: "Visitors get the maintenance page and do not reach the application.",
        next: step("Switch it off when the work is done.", call("projects.maintenance", { slug })),
      };

const sleeping: Rule = (facts, now) => {
  const { sleep, sleep_at: since, ready: up } = facts;
  if (sleep === null || up > 0) return undefined;
  const how =
    sleep === "waking"
      ? { code: "waking", sentence: "It was asleep, and starts because a request came." }
      : { code: "asleep", sentence: "It sleeps because no request came; the next one waits until it has started." };
  return deploying(facts, now) ?? { state: "asleep", ...how, since, next: null };
};

const recentMs = 5 * 60_000;
const isRecent = (at: string, now: Date) => now.getTime() - Date.parse(at) < recentMs;

const crashing: Rule = (facts, now) => {
  const { slug, active, crash_groups: groups, crashes_15, wanted } = facts;
  const own = groups?.find(({ deployment }) => deployment === active);
  // A single crash may be an accident.
  if (wanted === 0 || own === undefined || crashes_15 < 2 || !isRecent(own.at, now)) return undefined;
  const first = firstCrashing(groups ?? [], own);
  const end = own.out_of_memory ? "over its memory limit" : `exit code ${own.exit_code ?? "unknown"}`;
  const advice = own.out_of_memory
    ? "Find what uses the memory, or ask the operator for a higher limit."
    : "Its last log lines before each crash show the reason.";
  const began = first === own ? "" : ` Deployment #${first.deployment} already crashed.`;
  return {
    ...{ state: "crashing", code: own.out_of_memory ? "out_of_memory" : "crash_loop", since: own.since },
    sentence: `Deployment #${active} has crashed ${counted(own.crashes, "time")} since ${minuteOf(own.since)} (${end}).${began}`,
    next: step(`${advice} ${backText(facts, first.deployment)}`.trim(), logsOf(slug)),
    seen: { ...ready(facts), crashes: own.crashes, exit_code: own.exit_code, first_bad_deployment: first.deployment },
  };
};

type Groups = NonNullable<HealthFacts["crash_groups"]>;

/** Goes back from a deployment to the first of those that crashed until the next one replaced them, such as before a restart. */
function firstCrashing(groups: Groups, from: Groups[number]): Groups[number] {
  const before = groups.find(({ deployment }) => deployment < from.deployment);
  const isSame = before !== undefined && Date.parse(from.activated_at) - Date.parse(before.at) < recentMs;
  return isSame && before.crashes > 1 ? firstCrashing(groups, before) : from;
}

const down: Rule = (facts) => {
  const { slug, active, wanted, ready: up, web_wanted, web_ready } = facts;
  const isDown = web_wanted > 0 ? web_ready === 0 : wanted > 0 && up === 0;
  if (active === null || !isDown) return undefined;
  return {
    ...{ state: "down", code: "no_replica_ready" },
    sentence: `No replica of deployment #${active} is ready for requests.`,
    next: step("It is starting, has exited, or fails its health check: the log shows which.", logsOf(slug)),
    seen: ready(facts),
  };
};

const badTraffic: Rule = (facts, now) => {
  const { slug, active, traffic } = facts;
  if (traffic === null || traffic.active !== active || !isRecent(traffic.last_at, now)) return undefined;
  const { kind, bad, requests, before, since, deployment } = traffic;
  const isAll = bad === requests;
  const whose = deployment === null ? ` #${active} serves.` : ` It began with deployment #${deployment}.`;
  const what = kind === "errors" ? "got a status of 500 or above" : `took longer than ${traffic.over_ms} ms`;
  const was = before.requests === 0 ? "" : ` (before: ${before.bad} of ${before.requests})`;
  const advice =
    kind === "errors"
      ? "The log of that time shows the reason."
      : "Look for slow queries and calls that wait, in the log and the metrics of that time.";
  return {
    ...{ state: isAll && kind === "errors" ? "down" : "degraded", code: kind === "errors" ? "server_errors" : "slow" },
    since,
    sentence: `${bad} of ${counted(requests, "request")} since ${minuteOf(since)} ${what}${was}.${whose}`,
    next: step(`${advice} ${deployment === null ? "" : backText(facts, deployment)}`.trim(), logsOf(slug)),
    seen: { kind, requests, bad, before, first_bad_deployment: deployment },
  };
};

const degraded: Rule = (facts) => {
  const { slug, active, wanted, ready: up, database, database_alert: alert } = facts;
  if (database === "failed" || alert !== null)
    return {
      ...{ state: "degraded", code: "database_failed" },
      sentence: alert ?? "The database does not run.",
      next: step("Follow its hint. Often the platform's operator has to act.", call("database.get", { slug })),
    };
  if (active === null || up >= wanted) return undefined;
  return {
    ...{ state: "degraded", code: "replicas_missing" },
    sentence: `${up} of ${wanted} replicas of deployment #${active} are ready.`,
    next: step("The others are starting, or have exited: the log shows which.", logsOf(slug)),
    seen: ready(facts),
  };
};

const deploying: Rule = ({ build, deployment }) => {
  if (build !== null && ["queued", "running"].includes(build.status))
    return {
      ...{ state: "deploying", code: "building", since: build.created_at },
      sentence: `Build ${build.number} is ${build.status === "queued" ? "queued" : "in progress"}.`,
      next: step("Follow it until it ends.", call("builds.get", { id: build.id })),
    };
  if (deployment === null || !["pending", "starting"].includes(deployment.status)) return undefined;
  return {
    ...{ state: "deploying", code: "releasing", since: deployment.created_at },
    sentence: `Deployment #${deployment.number} is starting.`,
    next: null,
  };
};

/** Nothing serves: either nothing was pushed yet, or what was pushed failed. */
const without: Rule = ({ slug, active, build, deployment }) => {
  if (active !== null) return undefined;
  const isBuild = build !== null && (deployment === null || build.created_at > deployment.created_at);
  const last = isBuild ? build : deployment;
  if (last?.status === "failed")
    return {
      ...{ state: "down", code: last.code ?? (isBuild ? "build_failed" : "deployment_failed") },
      sentence: `Nothing serves yet: ${isBuild ? "build " : "deployment #"}${last.number} failed.`,
      next: step(
        "Follow the hint of its failure, correct the code and push again.",
        call(isBuild ? "builds.list" : "deployments.list", { slug }),
      ),
    };
  return {
    ...{ state: "empty", code: "nothing_deployed", sentence: "Nothing is deployed yet." },
    next: step("Push the code to the project's git repository, or send a folder.", null),
  };
};

const good: Rule = ({ active, wanted, ready: up }) =>
  wanted === 0
    ? {
        ...{ state: "asleep", code: "asleep", sentence: `All process types of deployment #${active} are scaled to 0.` },
        next: null,
      }
    : {
        ...{ state: "healthy", code: "healthy", next: null },
        sentence: `Deployment #${active} serves: ${up} of ${counted(wanted, "replica")} ready.`,
      };

const rules: readonly Rule[] = [
  inMaintenance,
  sleeping,
  crashing,
  down,
  badTraffic,
  degraded,
  deploying,
  without,
  good,
];

const ready = ({ ready: up, wanted }: HealthFacts) => ({ ready: up, wanted });

/** Says whether a rollback helps: only if it leads to a deployment before the first bad one, and no release command has run since. */
function backText({ back_to: to, released_since: released }: HealthFacts, firstBad: number): string {
  if (to === null || to >= firstBad) return "";
  if (!released) return `A rollback brings #${to} back.`;
  return `A release command has run since #${to}, so its code may not fit the database: prefer a corrected push, or a rollback with the data of then.`;
}

/** Formats a time for a sentence; pages show it in the reader's zone. */
export function minuteOf(at: string): string {
  return `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function step(advice: string, next: NextCall | null): Health["next"] {
  return { advice, call: next };
}

const logsOf = (slug: string) => call("logs.list", { slug }, "?limit=200");

export function call(name: RouteName, params: Readonly<Record<string, string>>, query = ""): NextCall {
  const { method, path } = route(name);
  const filled = path.replaceAll(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key] ?? ""));
  return { route: name, method, path: `${filled}${query}` };
}
