import { ownServer } from "../../features/backups/backups.ts";
import type { ObservedHealth } from "../../features/health/health.ts";
import type * as status from "../../features/status/status.ts";
import { counted, bytesText } from "../../kit/bytes-text.ts";
import { about, listed, overall, spanText } from "./check.ts";

/** What a function of `status` found: a list, or a single row. */
type Found<Find extends (...given: never[]) => unknown> = Awaited<ReturnType<Find>>;

export interface DatabaseStates {
  readonly total: number;
  /** Databases whose row is not `ready`. */
  readonly troubled: Found<typeof status.troubledDatabases>;
  /** Databases that should respond but don't. */
  readonly silent: readonly string[];
}

const provisioningSeconds = 300;

export function evaluateDatabases({ total, troubled, silent }: DatabaseStates): readonly status.Finding[] {
  const hint =
    "Berth tries to start it again every few seconds; the control plane's log has the reason of the failure.";
  const bad = troubled
    .filter(({ status, seconds }) => status === "failed" || seconds >= provisioningSeconds)
    .map(({ subject, status, seconds }) =>
      status === "failed"
        ? about(subject, "fail", "The database could not be started.", hint)
        : about(subject, "warn", `Berth has been creating the database for ${spanText(seconds)}.`, hint),
    );
  const down = silent.map((subject) => about(subject, "fail", "The database does not respond.", hint));
  return listed([...bad, ...down], {
    ok:
      total === 0
        ? "There are no databases."
        : total === 1
          ? "The database responds."
          : `All ${total} databases respond.`,
    bad: `Databases that are down, of ${total}`,
  });
}

/** Evaluates users' hostnames: lost DNS records, and look-ups that are overdue. */
export function evaluateDomains(
  troubled: Found<typeof status.troubledDomains>,
  served: number,
): readonly status.Finding[] {
  const lost = troubled
    .filter(({ kind }) => kind === "lost")
    .map(({ subject, seconds }) => {
      const detail = `Its DNS records have pointed elsewhere for ${spanText(seconds)}; Berth serves it until the grace time is over.`;
      const hint = "Its owner has to set the records again; `berth domains check` shows which.";
      return about(subject, "warn", detail, hint);
    });
  const late = troubled.filter(({ kind }) => kind === "late");
  const overdue = late.slice(0, 1).map(({ seconds }) => {
    const detail = `${counted(late.length, "hostname")} should have been looked up ${spanText(seconds)} ago.`;
    return about("look-ups", "warn", detail, "Check BERTH_DNS_SERVERS and the task `domains`.");
  });
  return listed([...overdue, ...lost], {
    ok:
      served === 0
        ? "No custom hostname is served."
        : `${counted(served, "hostname")} served; all DNS records point here.`,
    bad: "Hostnames with problems",
  });
}

const lastDaysSeconds = 3 * 86_400;

/** Evaluates certificates of users' hostnames, if there are any. */
export function evaluateCertificates(
  troubled: Found<typeof status.troubledDomains>,
  count: number,
): readonly status.Finding[] {
  const bad = troubled
    .filter(({ kind }) => kind === "certificate" || kind === "ending")
    .map(({ subject, kind, seconds, detail }) => {
      const isEnding = kind === "ending";
      const what = isEnding ? `Its certificate expires in ${spanText(seconds)}.` : "It has no valid certificate.";
      const status = isEnding && seconds > lastDaysSeconds ? "warn" : "fail";
      const hint = "`berth domains` shows the reason and the next attempt.";
      return about(subject, status, detail === null ? what : `${what} ${detail}`, hint);
    });
  if (bad.length === 0 && count === 0) return [overall("off", "No hostname has a certificate.")];
  return listed(bad, {
    ok: `Valid certificates: ${count}.`,
    bad: "Hostnames without a valid certificate",
  });
}

/** Evaluates the age of each database's newest backup. Older than `most.seconds` is a warning, twice as old a failure. */
export function evaluateBackups(
  ages: Found<typeof status.backupAges>,
  most: { readonly seconds: number; readonly daily: boolean },
): readonly status.Finding[] {
  const bad = ages.flatMap(({ subject, database_seconds, backup_seconds, verification }): status.Finding[] => {
    if (verification === "mismatch" || verification === "failed") {
      const hint = "Create another one with `berth backups create` and verify it.";
      return [about(subject, "fail", "Its newest backup failed its verification.", hint)];
    }
    const seconds = backup_seconds ?? database_seconds;
    if (!most.daily || seconds < most.seconds) return [];
    const detail =
      backup_seconds === null
        ? `It has no backup after ${spanText(seconds)}.`
        : `Its newest backup is ${spanText(seconds)} old.`;
    const status = seconds >= 2 * most.seconds ? "fail" : "warn";
    return [about(subject, status, detail, "`berth backups` shows why the last one failed.")];
  });
  if (!most.daily && bad.length === 0)
    return [overall("off", "Automatic backups are switched off (BERTH_BACKUP_WINDOW).")];
  const backedUp = ages.filter(({ backup_seconds }) => backup_seconds !== null).length;
  return listed(bad, {
    ok: backupText(ages.length, backedUp, spanText(most.seconds)),
    bad: "Databases without a good backup",
  });
}

function backupText(databases: number, backedUp: number, span: string): string {
  if (databases === 0) return "There are no databases to back up.";
  if (backedUp === 0)
    return `${counted(databases, "database")} too new to have a backup; Berth creates the first one within a day.`;
  const young = backedUp === databases ? "" : " The other databases are too new to have one.";
  return `${backedUp} of ${counted(databases, "database")} ${backedUp === 1 ? "has" : "have"} a backup from the last ${span}.${young}`;
}

const cronSeconds = { warn: 30, fail: 120 };

/** Evaluates how late cron jobs start. A due job without a run counts like a run that waits for its call. */
export function evaluateCron({
  jobs,
  due_seconds,
  waiting_seconds,
}: Found<typeof status.cronLateness>): status.Finding {
  const seconds = Math.max(due_seconds ?? 0, waiting_seconds ?? 0);
  if (jobs === 0 && seconds === 0) return overall("ok", "There are no cron jobs.");
  if (seconds < cronSeconds.warn)
    return overall("ok", `${counted(jobs, "cron job")}; starts are at most ${spanText(seconds)} late.`);
  const detail = `Cron jobs start ${spanText(seconds)} late.`;
  const hint = "See the checks `scheduler` and `load`.";
  return overall(seconds >= cronSeconds.fail ? "fail" : "warn", detail, hint);
}

// A replica that crashed once, or that a restart of the machine ended, is back sooner.
const downMs = 30_000;

/** Lists applications that do not serve as they should. A loop of crashes is a failure, and so is one that is down for some time. */
export function evaluateHealth(seen: readonly ObservedHealth[], now: Date): readonly status.Finding[] {
  const bad = seen.flatMap(({ subject, health: { state, since, sentence, next }, is_loop }): status.Finding[] => {
    if (state !== "down" && state !== "crashing" && state !== "degraded") return [];
    const isDown = state === "down" && since !== null && now.getTime() - Date.parse(since) >= downMs;
    const status = isDown || is_loop ? "fail" : "warn";
    return [about(subject, status, sentence, next?.advice ?? null)];
  });
  return listed(bad, { ok: "All applications serve.", bad: "Applications that do not serve as they should" });
}

/** Evaluates projects' disk use. Only a limit that stops a project from writing or building is a failure. */
export function evaluateDiskLimits(near: Found<typeof status.projectsNearLimits>): readonly status.Finding[] {
  const byProject = Map.groupBy(near, ({ subject }) => subject);
  const bad = [...byProject].map(([subject, shares]) => {
    const isOver = shares.some(({ access, bytes, limit }) => access !== "open" || bytes > limit);
    const detail = shares
      .map(({ kind, bytes, limit }) => `${kind} ${bytesText(bytes)} of ${bytesText(limit)}`)
      .join(", ");
    const hint =
      "The project's owner can free space (`berth disk`), or you can change its limits (`berth disk limits`).";
    return about(subject, isOver ? "fail" : "warn", `${detail}.`, hint);
  });
  return listed(bad, { ok: "Every project is within its disk limits.", bad: "Projects near or over a disk limit" });
}

export interface WorkLimits {
  readonly buildMs: number;
  readonly deploymentMs: number;
}

const slackSeconds = 300;
const abandonedSeconds = 120;
const queuedSeconds = 1800;

/** Lists builds and deployments that take longer than allowed or have no worker. */
export function evaluateWork(work: Found<typeof status.openWork>, limits: WorkLimits): readonly status.Finding[] {
  const bad = work.flatMap(({ subject, kind, number, is_running, seconds, abandoned_seconds }): status.Finding[] => {
    const limit = (kind === "build" ? limits.buildMs : limits.deploymentMs) / 1000 + slackSeconds;
    const problem = !is_running
      ? seconds >= queuedSeconds && `has been waiting for ${spanText(seconds)}`
      : (seconds >= limit && `has been running for ${spanText(seconds)}`) ||
        ((abandoned_seconds ?? 0) >= abandonedSeconds && `lost its worker ${spanText(abandoned_seconds ?? 0)} ago`);
    if (problem === false) return [];
    const text = `${kind === "build" ? "Build" : "Deployment"} ${number} ${problem}.`;
    const hint = "See the check `reconcilers`; after a restart of the control plane the work continues.";
    return [about(`${subject} ${kind} ${number}`, is_running ? "fail" : "warn", text, hint)];
  });
  return listed(bad, {
    ok: `Builds and deployments in progress: ${work.length}, none of them for too long.`,
    bad: "Builds and deployments that are stuck",
  });
}

interface GivenUpWebhook {
  readonly id: string;
  readonly slug: string;
  readonly disabled_reason: string | null;
}

/** Lists webhooks that the platform disabled. Findings leave out their names, which are for the organization only. */
export function evaluateWebhooks(givenUp: readonly GivenUpWebhook[]): readonly status.Finding[] {
  const hint = "Once the receiver works, an owner of the organization runs `berth webhooks on`.";
  const bad = givenUp.map(({ id, slug, disabled_reason }) =>
    about(`${slug}/${id}`, "warn", `Berth switched the webhook off. ${disabled_reason ?? ""}`.trim(), hint),
  );
  return listed(bad, { ok: "No webhook was switched off.", bad: "Webhooks that were switched off" });
}

type Troubled = readonly { readonly subject: string; readonly problem: string }[];

/** Lists databases whose log is not being stored, and whose newest drill did not pass. On the operator's own server there is neither. */
export function evaluateArchives(archives: Troubled, drills: Troubled): readonly status.Finding[] {
  const behind = archives
    .filter(({ problem }) => problem !== ownServer)
    .map(({ subject, problem }) => {
      const hint =
        "Until it is stored again, a lost disk loses what the database wrote since. `berth backups archive` shows since when.";
      return about(subject, "warn", problem, hint);
    });
  const broken = drills.map(({ subject, problem }) => {
    const detail = `The newest trial restore from the archive did not pass. ${problem}`;
    return about(
      subject,
      "fail",
      detail,
      "`berth backups drills` shows them. Make a backup now: `berth backups create`.",
    );
  });
  return listed([...broken, ...behind.filter(({ subject }) => drills.every((each) => each.subject !== subject))], {
    ok: "The log of every database is stored, and every trial restore passed.",
    bad: "Databases whose archive has a problem",
  });
}
