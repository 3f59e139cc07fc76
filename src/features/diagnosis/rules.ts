import type { Answer } from "../../contract/client.ts";
import { call, minuteOf } from "../health/health.ts";

/** A project as the API shows it. Null: it could not be read, or does not exist. */
export interface ProjectState {
  readonly project: Answer<"projects.get">;
  readonly deployments: Answer<"deployments.list"> | null;
  readonly builds: Answer<"builds.list"> | null;
  readonly domains: Answer<"domains.list"> | null;
  readonly cron: Answer<"cron.list"> | null;
  readonly database: Answer<"database.get"> | null;
  readonly backups: Answer<"backups.list"> | null;
  readonly archive: Answer<"backups.archive"> | null;
  /** The last minutes' requests by path: those with the most errors, and the slowest. */
  readonly failing: Answer<"requests.paths"> | null;
  readonly slow: Answer<"requests.paths"> | null;
  readonly pathsSince: string;
}

export type Finding = Answer<"diagnosis.get">["findings"][number];

type Rule = (state: ProjectState) => readonly Finding[];

const severities = ["down", "broken", "notice"];

/** Returns everything that is wrong: the most severe findings first, and among equals the one that explains most. */
export function diagnosis(state: ProjectState): readonly Finding[] {
  return [
    ofHealth,
    failedDeployment,
    failedBuild,
    hostnames,
    cronJobs,
    databases,
    backups,
    archives,
    failingPaths,
    slowPaths,
  ]
    .flatMap((rule) => rule(state))
    .toSorted((one, other) => severities.indexOf(one.severity) - severities.indexOf(other.severity));
}

/** The project's health, unless a rule below tells the same with the failure. */
const ofHealth: Rule = ({ project: { health, active_deployment: active }, builds, deployments, database }) => {
  if (health === null || health.state === "healthy" || health.state === "asleep") return [];
  const { state, code, sentence, next, seen } = health;
  const hasFailed = isFailed(builds?.builds[0]) || isFailed(deployments?.deployments[0]);
  if (active === null && hasFailed && state !== "deploying") return [];
  if (code === "database_failed" && database?.status === "failed") return [];
  const isDown = state === "down" || state === "empty" || (state === "crashing" && seen["ready"] === 0);
  const severity = isDown ? "down" : state === "crashing" || state === "degraded" ? "broken" : "notice";
  const { advice = "No action is needed.", call: first = null } = next ?? {};
  return [finding(severity, code, { sentence, advice, seen, next: first })];
};

const failedBuild: Rule = ({ project, builds }) => {
  const [build] = builds?.builds ?? [];
  if (build === undefined || !isFailed(build)) return [];
  const active = project.active_deployment;
  return [
    finding(active === null ? "down" : "broken", build.failure?.code ?? "build_failed", {
      sentence: `Build ${build.number} failed; ${active === null ? "nothing is deployed yet" : `#${active.number} keeps serving`}.`,
      advice: "Follow the hint, correct the code and push again. The build's log has the details.",
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
  // A release command writes to the build's log; the application has not run yet.
  const isBefore = newest.failure?.stage === "release";
  return [
    finding(project.active_deployment === null ? "down" : "broken", newest.failure?.code ?? "deployment_failed", {
      sentence: `Deployment #${newest.number} failed and got no traffic.`,
      advice: `Follow the hint, correct the code and push again. The ${isBefore ? "build's" : "application's"} log has the details.`,
      seen: { deployment: newest.number, commit: newest.commit },
      failure: newest.failure,
      next: isBefore
        ? call("builds.logs", { id: newest.build_id })
        : call("logs.list", { slug: project.slug }, "?limit=200"),
    }),
  ];
};

/** A name that waits for its records is not broken: its owner has yet to create them. */
const hostnames: Rule = ({ project: { slug }, domains }) => {
  const next = call("domains.list", { slug });
  const all = domains?.domains ?? [];
  const elsewhere = all.filter(({ dns_status }) => dns_status !== "ok");
  const uncertified = all.filter(({ dns_status, ssl_status }) => dns_status === "ok" && ssl_status === "failed");
  return [
    ...elsewhere.map(
      ({ hostname, dns_status, dns_detail, serving, serving_until, instructions: { records, note } }) => {
        const isLost = !serving && serving_until !== null;
        const wanted = records.map(({ type, name, value }) => `${type} ${name} ${value}`).join(", ");
        return finding(isLost ? "broken" : "notice", `dns_${dns_status}`, {
          sentence: `${hostname} ${serving ? "is served, but its" : "waits for its"} DNS records: ${dns_detail}`,
          advice: wanted === "" ? note : `Create these records at your DNS provider: ${wanted}.`,
          seen: { hostname, dns_detail, records },
          next,
        });
      },
    ),
    ...uncertified.map(({ hostname, ssl_detail }) =>
      finding("broken", "certificate_failed", {
        sentence: `${hostname} has no certificate: ${ssl_detail}`,
        advice: "Correct what the detail names; Berth tries again by itself.",
        seen: { hostname, ssl_detail },
        next,
      }),
    ),
  ];
};

const cronJobs: Rule = ({ project: { slug }, cron }) =>
  (cron?.jobs ?? [])
    .filter(({ last_status }) => last_status === "failed" || last_status === "timeout")
    .map(({ name, path, last_status, last_run_at }) =>
      finding("broken", "cron_failed", {
        sentence: `The cron job ${name} (${path}) failed at its last run.`,
        advice: "The list of its runs shows the application's response.",
        seen: { name, path, last_status, last_run_at },
        next: call("cron.runs", { slug, name }),
      }),
    );

const databases: Rule = ({ project: { slug }, database }) =>
  database?.status !== "failed"
    ? []
    : [
        finding("broken", "database_failed", {
          sentence: `The database does not run. ${database.failure?.summary ?? ""}`.trim(),
          advice: "Follow its hint. Often the platform's operator has to act.",
          seen: { failure: database.failure },
          next: call("database.get", { slug }),
        }),
      ];

const backups: Rule = ({ project: { slug }, backups: list }) => {
  const [newest] = list?.backups ?? [];
  const next = call("backups.create", { slug });
  if (newest?.status === "failed")
    return [
      finding("notice", "backup_failed", {
        sentence: `The newest backup failed. ${newest.failure?.summary ?? ""}`.trim(),
        advice: "Create another one.",
        seen: { backup: newest.id, failure: newest.failure },
        next,
      }),
    ];
  if (newest === undefined || newest.verification === null || newest.verification.status === "verified") return [];
  return [
    finding("broken", "backup_unverified", {
      sentence: "The newest backup failed its verification.",
      advice: "Create another one and verify it.",
      seen: { backup: newest.id, verification: newest.verification },
      next,
    }),
  ];
};

const archives: Rule = ({ project: { slug }, archive }) =>
  archive?.status !== "behind"
    ? []
    : [
        finding("notice", "archive_behind", {
          sentence: `What the database writes is not being archived. ${archive.reason ?? ""}`.trim(),
          advice: "It catches up by itself once the cause is gone; the platform's operator is told.",
          seen: { archive: archive.status },
          next: call("backups.archive", { slug }),
        }),
      ];

// Fewer may be chance.
const leastRequests = 10;
const failingShare = 0.1;
const slowMs = 2000;
const mostNamed = 3;

const failingPaths: Rule = ({ project: { slug }, failing, pathsSince: since }) =>
  (failing?.paths ?? [])
    .filter(({ count, errors }) => count >= leastRequests && errors >= failingShare * count)
    .slice(0, mostNamed)
    .map(({ method, path, count, errors, ...times }) =>
      finding("broken", "path_failing", {
        sentence: `${method} ${path} failed ${errors} of ${count} times since ${minuteOf(since)}.`,
        advice: "Look at its requests, and at the application's log at their times.",
        seen: { method, path, count, errors, ...times },
        next: call("requests.list", { slug }, `?status=5xx&since=${encodeURIComponent(since)}`),
      }),
    );

const slowPaths: Rule = ({ project: { slug }, slow, pathsSince: since }) =>
  (slow?.paths ?? [])
    .filter(({ count, p95_ms }) => count >= leastRequests && p95_ms >= slowMs)
    .slice(0, mostNamed)
    .map(({ method, path, count, p95_ms, ...rest }) =>
      finding("notice", "path_slow", {
        sentence: `${method} ${path} is slow: one of 20 requests took ${(p95_ms / 1000).toFixed(1)} s or more since ${minuteOf(since)}.`,
        advice: "Look at its requests, and for what it waits: a query, another service, or its processor.",
        seen: { method, path, count, p95_ms, ...rest },
        next: call("requests.list", { slug }, `?slow_ms=${slowMs}&since=${encodeURIComponent(since)}`),
      }),
    );

function isFailed(one: { readonly status: string } | undefined): boolean {
  return one?.status === "failed";
}

type Rest = Pick<Finding, "sentence" | "advice" | "seen" | "next"> & Partial<Pick<Finding, "failure">>;

function finding(severity: Finding["severity"], code: string, { failure = null, ...rest }: Rest): Finding {
  return { severity, code, ...rest, failure };
}
