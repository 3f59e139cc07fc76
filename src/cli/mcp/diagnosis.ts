import type { Answer } from "../../contract/client.ts";

/** A project as the API shows it; null: could not be read, or there is none. */
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

/** Something that is not as it should be. `down`: nobody is served; `broken`: a part does not work; `notice`: worth knowing. */
export interface Finding {
  readonly severity: "down" | "broken" | "notice";
  readonly code: string;
  /** What was seen. Holds words of applications and users. */
  readonly seen: unknown;
  /** What happened and what helps, of a failed build or deployment. May quote what a command printed. */
  readonly failure?: Failure | null;
  readonly next: {
    readonly text: string;
    readonly tool: string | null;
    readonly arguments: Readonly<Record<string, unknown>>;
  };
}

type Failure = NonNullable<Answer<"builds.get">["failure"]>;
type Rule = (state: ProjectState, now: Date) => readonly Finding[];

const severities = ["down", "broken", "notice"];

/** Everything that is wrong, the likeliest cause first: worst first, and within that what explains most. */
export function diagnosis(state: ProjectState, now: Date): readonly Finding[] {
  const rules =
    state.project.state === "deleted"
      ? [deleted]
      : [crashes, notReady, failedDeployment, failedBuild, nothingDeployed, ...minor];
  return rules
    .flatMap((rule) => rule(state, now))
    .toSorted((one, other) => severities.indexOf(one.severity) - severities.indexOf(other.severity));
}

const deleted: Rule = ({ project }) => [
  finding(
    "down",
    "project_deleted",
    { deleted_at: project.deleted_at },
    {
      text: "The project is deleted; undeleting it brings the same deployment back.",
      tool: "projects_change",
      arguments: { action: "undelete", slug: project.slug },
    },
  ),
];

const nothingDeployed: Rule = ({ project, builds, deployments }) => {
  const hasFailed = isFailed(builds?.builds[0]) || isFailed(deployments?.deployments[0]);
  if (project.active_deployment !== null || hasFailed) return [];
  const [build] = builds?.builds ?? [];
  if (build !== undefined && ["queued", "running"].includes(build.status))
    return [
      finding(
        "notice",
        "building",
        { build: build.id, status: build.status },
        {
          text: "A build is under way; look at it until it ends.",
          tool: "deployments",
          arguments: { action: "build", id: build.id },
        },
      ),
    ];
  return [
    finding(
      "down",
      "nothing_deployed",
      { git: project.git },
      {
        text: "Nothing is deployed yet: push the code to the project's git repository, whose address is below.",
        tool: null,
        arguments: {},
      },
    ),
  ];
};

const failedBuild: Rule = ({ project, builds }) => {
  const [build] = builds?.builds ?? [];
  if (build === undefined || !isFailed(build)) return [];
  return [
    {
      failure: build.failure,
      ...finding(
        project.active_deployment === null ? "down" : "broken",
        build.failure?.code ?? "build_failed",
        build.failure,
        {
          text: "Follow the hint, correct the code and push again; what served before serves on. The whole log says more.",
          tool: "deployments",
          arguments: { action: "build_log", id: build.id },
        },
      ),
    },
  ];
};

const failedDeployment: Rule = ({ project, deployments }) => {
  const [newest] = deployments?.deployments ?? [];
  if (newest?.status !== "failed") return [];
  return [
    {
      failure: newest.failure,
      ...finding(
        project.active_deployment === null ? "down" : "broken",
        newest.failure?.code ?? "deployment_failed",
        newest.failure,
        {
          text: "Follow the hint, correct the code and push again; the newest deployment got no traffic. The application's log says more.",
          tool: "logs",
          arguments: { slug: project.slug, limit: 200 },
        },
      ),
    },
  ];
};

// As the platform's own alert: five restarts within five minutes are a loop.
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
  const code = isMemory ? "out_of_memory" : isLoop ? "crash_loop" : "crashes";
  const text = isMemory
    ? "The application uses more memory than a replica may have: find what grows, or ask the operator for more."
    : "The application ends by itself after it went live: its last lines before each crash say why. A rollback brings the last good deployment back.";
  return [
    finding(
      isDown ? "down" : "broken",
      code,
      recent.slice(0, 5).map(({ at, summary, detail }) => ({ at, summary, detail })),
      {
        text,
        tool: "logs",
        arguments: { slug: project.slug, limit: 200 },
      },
    ),
  ];
};

const notReady: Rule = ({ project, metrics }) => {
  const replicas = metrics?.replicas ?? [];
  if (project.active_deployment === null || replicas.length === 0 || replicas.some(({ ready }) => ready)) return [];
  const seen = replicas.map(({ replica, ready, restarts }) => ({ replica, ready, restarts }));
  return [
    finding("down", "no_replica_ready", seen, {
      text: "No replica is ready for requests: the application is starting, ended, or does not answer its health check. Its log says which.",
      tool: "logs",
      arguments: { slug: project.slug, limit: 200 },
    }),
  ];
};

const errors: Rule = ({ project, metrics }) => {
  if (metrics === null || metrics.total.requests < 20 || metrics.total.error_rate < 0.05) return [];
  const { requests, errors: failed, error_rate } = metrics.total;
  const first = metrics.buckets.find((bucket) => bucket.errors > 0);
  const before = metrics.deployments.findLast(({ at }) => first !== undefined && at <= first.at);
  return [
    finding(
      "broken",
      "server_errors",
      { requests, errors: failed, error_rate, since: first?.at, after_deployment: before?.number },
      {
        text: "Many requests are answered with 500 or above. The log of that time says why; if it began with a deployment, a rollback ends it.",
        tool: "logs",
        arguments: { slug: project.slug, limit: 500 },
      },
    ),
  ];
};

const slowMs = 2000;

const slowness: Rule = ({ project, metrics }) => {
  const p95 = metrics?.total.latency_ms.p95 ?? null;
  if (metrics === null || p95 === null || metrics.total.requests < 20 || p95 < slowMs) return [];
  return [
    finding("notice", "slow", metrics.total.latency_ms, {
      text: "One request in twenty takes longer than two seconds: compare with the use of processor and memory, and look for slow queries.",
      tool: "metrics",
      arguments: { slug: project.slug, range: "24h" },
    }),
  ];
};

const hostnames: Rule = ({ project, domains }) =>
  (domains?.domains ?? []).flatMap((domain) => {
    const { hostname, dns_status, dns_detail, ssl_status, ssl_detail, serving, instructions } = domain;
    const next = { tool: "domains", arguments: { slug: project.slug } };
    if (dns_status !== "ok")
      return [
        finding(
          serving ? "notice" : "broken",
          `dns_${dns_status}`,
          { hostname, dns_detail, records: instructions.records },
          {
            ...next,
            text: "A hostname's DNS records do not lead here: create the records that are listed, at the name's provider.",
          },
        ),
      ];
    if (ssl_status !== "failed") return [];
    return [
      finding(
        "broken",
        "certificate_failed",
        { hostname, ssl_detail },
        { ...next, text: "A hostname got no certificate; its detail says why and when it is tried again." },
      ),
    ];
  });

const cronJobs: Rule = ({ project, cron }) =>
  (cron?.jobs ?? [])
    .filter(({ last_status }) => last_status === "failed" || last_status === "timeout")
    .map(({ name, path, last_status, last_run_at }) =>
      finding(
        "broken",
        "cron_failed",
        { name, path, last_status, last_run_at },
        {
          text: "A cron job's last run failed: its runs show the application's answer.",
          tool: "cron",
          arguments: { action: "runs", slug: project.slug, name },
        },
      ),
    );

const databases: Rule = ({ project, database }) =>
  database?.status !== "failed"
    ? []
    : [
        finding("broken", "database_failed", database.failure, {
          text: "The database does not run: its hint says what helps. Often the platform's operator has to act.",
          tool: "database",
          arguments: { action: "get", slug: project.slug },
        }),
      ];

const backups: Rule = ({ project, backups: list }) => {
  const [newest] = list?.backups ?? [];
  if (newest === undefined) return [];
  const next = { tool: "backups_change", arguments: { action: "create", slug: project.slug, wait: true } };
  if (newest.status === "failed")
    return [
      finding("notice", "backup_failed", newest.failure, { ...next, text: "The newest backup failed; make another." }),
    ];
  if (newest.verification === null || newest.verification.status === "verified") return [];
  return [
    finding("broken", "backup_unverified", newest.verification, {
      ...next,
      text: "The newest backup did not pass its verification; make another and verify it.",
    }),
  ];
};

const minor = [errors, hostnames, cronJobs, databases, backups, slowness];

function isFailed(build: { readonly status: string } | undefined): boolean {
  return build?.status === "failed";
}

function finding(severity: Finding["severity"], code: string, seen: unknown, next: Finding["next"]): Finding {
  return { severity, code, seen, next };
}
