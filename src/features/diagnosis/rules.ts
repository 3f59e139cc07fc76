import type { Answer } from "../../contract/client.ts";
import type { NextCall } from "../../contract/errors.ts";
import { route, type RouteName } from "../../contract/routes.ts";

/** A project as the API shows it. Null: it could not be read, or does not exist. */
export interface ProjectState {
  readonly project: Answer<"projects.get">;
  readonly deployments: Answer<"deployments.list"> | null;
  readonly builds: Answer<"builds.list"> | null;
  readonly logs: Answer<"logs.list"> | null;
  readonly domains: Answer<"domains.list"> | null;
  readonly metrics: Answer<"metrics.get"> | null;
  readonly timeline: Answer<"timeline.list"> | null;
  readonly cron: Answer<"cron.list"> | null;
  readonly database: Answer<"database.get"> | null;
  readonly backups: Answer<"backups.list"> | null;
}

export type Finding = Answer<"diagnosis.get">["findings"][number];

type Rule = (state: ProjectState, now: Date) => readonly Finding[];

const severities = ["down", "broken", "notice"];

/** Returns everything that is wrong: the most severe findings first, and among equals the one that explains most. */
export function diagnosis(state: ProjectState, now: Date): readonly Finding[] {
  const rules =
    state.project.state === "deleted"
      ? [deleted]
      : [inMaintenance, crashes, notReady, failedDeployment, failedBuild, nothingDeployed, ...minor];
  return rules
    .flatMap((rule) => rule(state, now))
    .toSorted((one, other) => severities.indexOf(one.severity) - severities.indexOf(other.severity));
}

const deleted: Rule = ({ project: { slug, deleted_at } }) => [
  finding("down", "project_deleted", {
    advice: "The project is deleted; undelete it to bring the same deployment back.",
    seen: { deleted_at },
    next: call("projects.undelete", { slug }),
  }),
];

const inMaintenance: Rule = ({ project: { slug, maintenance } }) =>
  maintenance === null
    ? []
    : [
        finding("notice", "maintenance", {
          advice:
            "The maintenance page is on, so visitors do not reach the application; switch it off when the work is done.",
          seen: { since: maintenance.since, message: maintenance.message },
          next: call("projects.maintenance", { slug }),
        }),
      ];

const nothingDeployed: Rule = ({ project, builds, deployments }) => {
  const hasFailed = isFailed(builds?.builds[0]) || isFailed(deployments?.deployments[0]);
  if (project.active_deployment !== null || hasFailed) return [];
  const [build] = builds?.builds ?? [];
  if (build !== undefined && ["queued", "running"].includes(build.status))
    return [
      finding("notice", "building", {
        advice: "A build is in progress; follow it until it ends.",
        seen: { build: build.id, status: build.status },
        next: call("builds.get", { id: build.id }),
      }),
    ];
  return [
    finding("down", "nothing_deployed", {
      advice: "Nothing is deployed yet: push the code to the project's git repository, or send a folder.",
      seen: { git: project.git },
      next: null,
    }),
  ];
};

const failedBuild: Rule = ({ project, builds }) => {
  const [build] = builds?.builds ?? [];
  if (build === undefined || !isFailed(build)) return [];
  return [
    finding(project.active_deployment === null ? "down" : "broken", build.failure?.code ?? "build_failed", {
      advice: `Follow the hint, correct the code and push again; ${project.active_deployment === null ? "nothing is deployed yet" : "the previous deployment keeps serving"}. The build's log has the details.`,
      seen: { build: build.id, number: build.number, commit: build.commit },
      failure: build.failure,
      next: call("builds.logs", { id: build.id }),
    }),
  ];
};

// A newer build that failed replaces this finding: it is about code that was pushed later.
const failedDeployment: Rule = ({ project, deployments, builds }) => {
  const [newest] = deployments?.deployments ?? [];
  const [build] = builds?.builds ?? [];
  if (newest === undefined || !isFailed(newest)) return [];
  if (build !== undefined && isFailed(build) && build.created_at > newest.created_at) return [];
  return [
    finding(project.active_deployment === null ? "down" : "broken", newest.failure?.code ?? "deployment_failed", {
      advice:
        "Follow the hint, correct the code and push again; the failed deployment got no traffic. The application's log has the details.",
      seen: { deployment: newest.number, commit: newest.commit },
      failure: newest.failure,
      next: logsOf(project.slug),
    }),
  ];
};

// The same threshold as the platform's own alert: five restarts within five minutes are a loop.
const loopRestarts = 5;
const loopMs = 5 * 60_000;

const crashes: Rule = ({ project, timeline, metrics }, now) => {
  const crashed = (timeline?.timeline ?? []).filter(
    ({ action }) => action === "replica.crashed" || action === "replica.out_of_memory",
  );
  const recent = crashed.filter(({ at }) => now.getTime() - Date.parse(at) < 12 * loopMs);
  if (recent.length === 0) return [];
  const isMemory = recent.some(({ action }) => action === "replica.out_of_memory");
  const isLoop = recent.filter(({ at }) => now.getTime() - Date.parse(at) < loopMs).length >= loopRestarts;
  const replicas = metrics?.replicas ?? [];
  const isDown = replicas.length > 0 && replicas.every(({ ready }) => !ready);
  return [
    finding(isDown ? "down" : "broken", isMemory ? "out_of_memory" : isLoop ? "crash_loop" : "crashes", {
      advice: isMemory
        ? "The application exceeds a replica's memory limit: find what uses the memory, or ask the operator for a higher limit."
        : "The application keeps exiting after it went live: its last log lines before each crash show the reason. A rollback brings the last good deployment back.",
      seen: { crashes: recent.slice(0, 5).map(({ at, summary, target }) => ({ at, summary, target })) },
      next: logsOf(project.slug),
    }),
  ];
};

const notReady: Rule = ({ project, metrics }) => {
  const replicas = metrics?.replicas ?? [];
  if (project.active_deployment === null || replicas.length === 0 || replicas.some(({ ready }) => ready)) return [];
  return [
    finding("down", "no_replica_ready", {
      advice:
        "No replica is ready for requests: the application is starting, has exited, or fails its health check. Its log shows which.",
      seen: { replicas: replicas.map(({ replica, ready, restarts }) => ({ replica, ready, restarts })) },
      next: logsOf(project.slug),
    }),
  ];
};

const errors: Rule = ({ project, metrics }) => {
  if (metrics === null || metrics.total.requests < 20 || metrics.total.error_rate < 0.05) return [];
  const { requests, errors: failed, error_rate } = metrics.total;
  const first = metrics.buckets.find((bucket) => bucket.errors > 0);
  const before = metrics.deployments.findLast(({ at }) => first !== undefined && at <= first.at);
  const since = { since: first?.at ?? null, after_deployment: before?.number ?? null };
  return [
    finding("broken", "server_errors", {
      advice:
        "Many requests get a status of 500 or above. The log of that time shows the reason; if it began with a deployment, roll back.",
      seen: { requests, errors: failed, error_rate, ...since },
      next: logsOf(project.slug),
    }),
  ];
};

const slowMs = 2000;

const slowness: Rule = ({ project: { slug }, metrics }) => {
  const p95 = metrics?.total.latency_ms.p95 ?? null;
  if (metrics === null || p95 === null || metrics.total.requests < 20 || p95 < slowMs) return [];
  return [
    finding("notice", "slow", {
      advice:
        "One request in twenty takes longer than two seconds: check processor and memory use, and look for slow queries.",
      seen: { latency_ms: metrics.total.latency_ms },
      next: call("metrics.get", { slug }, "?range=24h"),
    }),
  ];
};

const hostnames: Rule = ({ project: { slug }, domains }) =>
  (domains?.domains ?? []).flatMap((domain) => {
    const { hostname, dns_status, dns_detail, ssl_status, ssl_detail, serving, instructions } = domain;
    const next = call("domains.list", { slug });
    if (dns_status !== "ok") {
      const { records, note } = instructions;
      const advice =
        records.length === 0
          ? `A hostname cannot be served yet. ${note}`
          : "A hostname's DNS records do not point here: create the listed records at your DNS provider.";
      const seen = { hostname, dns_detail, records };
      return [finding(serving ? "notice" : "broken", `dns_${dns_status}`, { advice, seen, next })];
    }
    if (ssl_status !== "failed") return [];
    return [
      finding("broken", "certificate_failed", {
        advice: "A hostname has no certificate; its detail shows the reason and the next attempt.",
        seen: { hostname, ssl_detail },
        next,
      }),
    ];
  });

const cronJobs: Rule = ({ project: { slug }, cron }) =>
  (cron?.jobs ?? [])
    .filter(({ last_status }) => last_status === "failed" || last_status === "timeout")
    .map(({ name, path, last_status, last_run_at }) =>
      finding("broken", "cron_failed", {
        advice: "A cron job's last run failed: the list of its runs shows the application's response.",
        seen: { name, path, last_status, last_run_at },
        next: call("cron.runs", { slug, name }),
      }),
    );

const databases: Rule = ({ project: { slug }, database }) =>
  database?.status !== "failed"
    ? []
    : [
        finding("broken", "database_failed", {
          advice: "The database does not run: follow its hint. Often the platform's operator has to act.",
          seen: { failure: database.failure },
          next: call("database.get", { slug }),
        }),
      ];

const backups: Rule = ({ project: { slug }, backups: list }) => {
  const [newest] = list?.backups ?? [];
  if (newest === undefined) return [];
  const next = call("backups.create", { slug });
  if (newest.status === "failed")
    return [
      finding("notice", "backup_failed", {
        advice: "The newest backup failed; create another one.",
        seen: { backup: newest.id, failure: newest.failure },
        next,
      }),
    ];
  if (newest.verification === null || newest.verification.status === "verified") return [];
  return [
    finding("broken", "backup_unverified", {
      advice: "The newest backup failed its verification; create another one and verify it.",
      seen: { backup: newest.id, verification: newest.verification },
      next,
    }),
  ];
};

const minor = [errors, hostnames, cronJobs, databases, backups, slowness];

function isFailed(one: { readonly status: string } | undefined): boolean {
  return one?.status === "failed";
}

type Rest = Pick<Finding, "advice" | "seen" | "next"> & Partial<Pick<Finding, "failure">>;

function finding(severity: Finding["severity"], code: string, { failure = null, ...rest }: Rest): Finding {
  return { severity, code, ...rest, failure };
}

const logsOf = (slug: string) => call("logs.list", { slug }, "?limit=200");

/** Returns a route with its path parameters filled in. */
function call(name: RouteName, params: Readonly<Record<string, string>>, query = ""): NextCall {
  const { method, path } = route(name);
  const filled = path.replaceAll(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key] ?? ""));
  return { route: name, method, path: `${filled}${query}` };
}
