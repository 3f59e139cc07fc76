import { randomBytes } from "node:crypto";
import { rehearsalLines, type RehearsalReport } from "../../contract/rehearsal.ts";
import { databaseOfDeployment, databaseVariables, specOf } from "../../features/database/database.ts";
import { activeOf } from "../../features/deployments/deployments.ts";
import {
  beginRehearsal,
  endRehearsal,
  noteCopy,
  reportOf,
  type Outcome,
  askerOf,
  lossesOf,
  promotionSeen,
  sameLosses,
} from "../../features/rehearsals/rehearsals.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { emptyFolderBytes } from "../../kit/folder-bytes.ts";
import { createLineSplitter } from "../../kit/log-lines.ts";
import { redactor } from "../../kit/redact.ts";
import type { Failure } from "../../ports/failure.ts";
import {
  CopyIsFull,
  DatabaseWorkFailed,
  type ClonedInstance,
  type DatabaseHistory,
  type DatabaseSpec,
} from "../../ports/postgres-host.ts";
import type { OneOffResult, Workload } from "../../ports/runtime.ts";
import { requireLease } from "../../store/leases.ts";
import { spanText } from "../monitors/check.ts";
import { secretsIn } from "../workload.ts";
import { clearRehearsal, copiedFiles } from "./clear-rehearsals.ts";
import { releaseCommandFailure, releaseFailure } from "./release-failures.ts";
import type { Release } from "./start-processes.ts";
import { askForApproval, consumeApproval, type GatedRequest } from "../../features/approvals/approvals.ts";

/** Beyond it, `auto` copies nothing byte by byte. */
const mostCopiedBytes = 2 * 1024 ** 3;
const limitMs = 15 * 60_000;
const mostLines = 200;

/**
 * Runs the release command on a copy of the data before it runs on the data itself. Resolves with the failure of a deployment that must not
 * go on; otherwise with whether the command passed. A rehearsal that could not be held is recorded as skipped.
 */
export async function rehearse(release: Release, command: string | null): Promise<Failure | "passed" | "skipped"> {
  if (command === null) return skip(release, { reason: "There is no release command." });
  const planned = await planFor(release);
  if ("reason" in planned) return skip(release, planned);
  const { platform, deployment, lease, log } = release;
  await requireLease(platform.db, lease);
  await beginRehearsal(platform.db, deployment, planned.spec.id);
  log.step(`Rehearsing on a copy of ${bytesText(planned.bytes)}`);
  try {
    const outcome = await hold(release, planned, command);
    await endRehearsal(platform.db, deployment, outcome);
    return await concluded(release, outcome);
  } finally {
    await clearRehearsal(platform, { ...deployment, database_id: planned.spec.id });
  }
}

interface Plan {
  readonly spec: DatabaseSpec;
  readonly history: DatabaseHistory;
  readonly bytes: number;
  readonly mayCopy: boolean;
}

interface Obstacle {
  readonly reason: string;
  /** There is nothing that a rehearsal could tell. */
  readonly isQuiet?: true;
}

async function planFor({ platform, deployment }: Release): Promise<Plan | Obstacle> {
  const { copies_data, rehearse_only, settings, org_id, project_id } = deployment;
  // An agent does not choose what a human sees, and who asks for a rehearsal wants one.
  const isAsked = copies_data || rehearse_only;
  const mode = isAsked && settings?.rehearse === "never" ? "auto" : (settings?.rehearse ?? "auto");
  const row = await databaseOfDeployment(platform.db, deployment);
  if (!row?.engine_version) return { reason: "The project has no database.", isQuiet: true };
  if (deployment.preview_of !== null) return { reason: "A preview's data is its own.", isQuiet: true };
  if (mode === "never") return { reason: "berth.json says `rehearse: never`." };
  if (!isAsked && (await activeOf(platform.db, org_id, project_id)) === undefined)
    return { reason: "Nothing of this project is live yet.", isQuiet: true };
  const { postgresHost, dataDisk } = platform.ports;
  const history = postgresHost.history(row.id);
  if (history === null)
    return { reason: "The database is on a server of the operator's own, which Berth does not copy." };
  const spec = specOf(platform.vault, row);
  const seen = await postgresHost.observe(spec);
  if (seen.state !== "running") return { reason: "The database is not running." };
  const { is_short, available_bytes } = await dataDisk.observe();
  if (is_short || available_bytes < seen.size_bytes)
    return { reason: "The disk has no room for a copy of the database." };
  const mayCopy = mode === "always" || seen.size_bytes < mostCopiedBytes;
  return { spec, history, bytes: seen.size_bytes, mayCopy };
}

async function skip({ platform, deployment, log }: Release, { reason, isQuiet }: Obstacle): Promise<"skipped"> {
  await beginRehearsal(platform.db, deployment, null);
  await endRehearsal(platform.db, deployment, { status: "skipped", reason, report: null });
  if (isQuiet !== true || deployment.rehearse_only) log.detail(`Not rehearsed: ${reason}`);
  return "skipped";
}

/** A rehearsal that ends before the command could; its message is a sentence for the project's owner. */
class NotHeld extends Error {}

async function hold(release: Release, plan: Plan, command: string): Promise<Outcome> {
  const time = AbortSignal.timeout(limitMs);
  const signal = AbortSignal.any([release.signal, time]);
  try {
    return await performOnCopy({ ...release, signal }, plan, command);
  } catch (error) {
    release.signal.throwIfAborted();
    const { platform, deployment } = release;
    platform.log.warn({ err: error, deployment: deployment.id }, "a release command was not rehearsed");
    return { status: "skipped", reason: time.aborted ? tooLong(limitMs) : reasonOf(error), report: null };
  }
}

const tooLong = (ms: number) => `The rehearsal took longer than ${spanText(ms / 1000)}.`;

function reasonOf(error: unknown): string {
  if (error instanceof NotHeld || error instanceof DatabaseWorkFailed) return error.message;
  if (error instanceof CopyIsFull)
    return `The database is larger than ${bytesText(mostCopiedBytes)}, and the file system cannot share blocks with a copy: \`"rehearse": "always"\` in berth.json copies it all the same.`;
  return "The data could not be copied.";
}

async function performOnCopy(release: Release, plan: Plan, command: string): Promise<Outcome> {
  const { platform, deployment, signal } = release;
  const { spec, history, mayCopy, bytes } = plan;
  const copied = { ...spec, password: randomBytes(24).toString("base64url") };
  const copy = await history.clone(spec, { mayCopy, password: copied.password, signal });
  await noteCopy(platform.db, deployment, { method: copy.method, copy_bytes: bytes });
  await copyFiles(release, mayCopy);
  const before = await copy.tables(spec.database_name, signal);
  const watch = await copy.watch(spec.database_name);
  const begun = performance.now();
  const result = await runOnCopy(release, workloadOn(release, copy, copied), command).finally(() => watch.end());
  const seconds = (performance.now() - begun) / 1000;
  if (result.outcome === "timed_out" || result.outcome === "cancelled") throw new NotHeld(tooLong(commandMs(platform)));
  const failure = releaseCommandFailure(result, command);
  const compare = async () => {
    if (result.outcome !== "exited") return null;
    const after = await copy.tables(spec.database_name, signal);
    return reportOf({ before, after, locks: await watch.end(), seconds, exit_code: result.code });
  };
  // What a failed command left running may hold locks on the copy; the data must not meet that command all the same.
  const report = await compare().catch((error: unknown) => {
    if (failure === undefined) throw error;
    return null;
  });
  return { status: failure === undefined ? "passed" : "failed", reason: failure?.summary ?? null, report };
}

/** Copies the files in `$STORAGE_DIR`: the command never sees the live ones. */
async function copyFiles({ platform, deployment, workload, signal }: Release, mayCopy: boolean): Promise<void> {
  if (workload.storage_access === "none") return;
  const { runtime } = platform.ports;
  const to = copiedFiles(deployment);
  await runtime.removeStorage(to);
  const bytes = await runtime.storageBytes(deployment);
  if (!mayCopy || bytes === null || bytes > mostCopiedBytes)
    throw new NotHeld(`The files in $STORAGE_DIR are more than ${bytesText(mostCopiedBytes)}.`);
  const archive = bytes > emptyFolderBytes ? await runtime.readStorage(deployment, signal) : null;
  if (archive !== null) await runtime.writeStorage(to, null, archive, signal);
}

function workloadOn({ platform, deployment, workload }: Release, copy: ClonedInstance, spec: DatabaseSpec): Workload {
  const address = platform.ports.runtime.endpointFor(copy.server, deployment.image.runtime);
  return {
    ...workload,
    env: { ...workload.env, ...databaseVariables(spec, address, null), BERTH_REHEARSAL: "1" },
    reach: [copy.server],
    storage_id: copiedFiles(deployment).project_id,
    has_stored_files: false,
  };
}

const commandMs = ({ settings }: Release["platform"]) => Math.min(limitMs, settings.releaseTimeoutMs);

/** Its output is shown only when it fails: the real run shows the same again. */
async function runOnCopy({ platform, log, signal }: Release, workload: Workload, command: string) {
  const kept: string[] = [];
  const redact = redactor(secretsIn(workload.env));
  const lines = createLineSplitter((text) => {
    kept.push(redact(text));
    if (kept.length > mostLines) kept.shift();
  });
  const limits = { timeoutMs: commandMs(platform), silenceMs: platform.settings.buildLimits.silenceMs };
  const onOutput = (chunk: Buffer) => void lines.push(chunk);
  const result: OneOffResult = await platform.ports.runtime.runOnce(workload, { command, ...limits, signal, onOutput });
  lines.end();
  if (result.outcome === "exited" && result.code !== 0) for (const line of kept) log.detail(line);
  return result;
}

async function concluded(release: Release, outcome: Outcome): Promise<Failure | "passed" | "skipped"> {
  const { deployment, log } = release;
  const { status, reason, report } = outcome;
  if (status === "skipped") {
    log.detail(`Not rehearsed: ${reason}`);
    return "skipped";
  }
  for (const line of report === null ? [] : rehearsalLines(report).slice(0, 20)) log.detail(line);
  if (status === "failed")
    return releaseFailure(
      "release",
      "rehearsal_failed",
      `Refused: the release command failed on a copy of the data (${reason}) Production was not touched.`,
    );
  log.detail(`Passed on the copy in ${(report?.seconds ?? 0).toFixed(1)} s`);
  const goesOn = deployment.copies_data && !deployment.rehearse_only;
  const needsHuman = goesOn && report !== null ? await askForLosses(release, report) : undefined;
  return needsHuman ?? "passed";
}

/**
 * Asks a person before a token in approval mode destroys data: tables, columns, or more rows than the settings allow. Returns undefined
 * when nothing of that kind is lost, or a person has approved exactly this loss by this commit.
 */
async function askForLosses(release: Release, report: RehearsalReport): Promise<Failure | undefined> {
  const { platform, deployment, lease, log } = release;
  const losses = lossesOf(report, platform.settings.rehearsalLosses);
  if (losses.length === 0) return undefined;
  const told = rehearsalLines({ ...report, tables: losses, further_tables: 0 }).join("; ");
  const asker = await askerOf(platform.db, deployment);
  if (asker === undefined) return needsHuman(`The release command would remove data: ${told}.`, noToken);
  const seen = await promotionSeen(platform.db, deployment);
  if (seen !== undefined && isSame(losses, lossesOf(seen.report, platform.settings.rehearsalLosses)))
    return void log.detail(`Approved by a person, with the rehearsal: ${seen.id}`);
  const request = requestOf(release, { asker, report, losses });
  await requireLease(platform.db, lease);
  const now = platform.clock.now();
  const id = await platform.db.transaction().execute((tx) => consumeApproval(tx, request, now));
  if (id !== undefined) return void log.detail(`Approved by a person: ${id}`);
  const addresses = { controlUrl: platform.controlUrl() };
  const asked = await askForApproval({ ...platform, addresses }, request);
  if (asked.outcome === "full")
    return needsHuman(`The release command would remove data: ${told}. Too many requests wait for approval.`, noToken);
  if (asked.outcome === "denied")
    return releaseFailure("release", "approval_denied", `A person denied this (${asked.approval.id}): ${told}.`);
  return needsHuman(
    `The release command would remove data: ${told}. A person must approve it: ${asked.approval.id}. Production was not touched.`,
    `Wait for the decision (GET /v1/approvals/${asked.approval.id}?wait=60), then deploy the same commit again within an hour.`,
  );
}

const isSame = (...[a, b]: readonly (readonly Losing["losses"][number][])[]) =>
  JSON.stringify(sameLosses(a ?? [])) === JSON.stringify(sameLosses(b ?? []));

const noToken = "Let a person deploy whose token is not in approval mode.";

function needsHuman(summary: string, hint: string): Failure {
  return { ...releaseFailure("release", "approval_required", summary), hint };
}

interface Losing {
  readonly asker: NonNullable<Awaited<ReturnType<typeof askerOf>>>;
  readonly report: RehearsalReport;
  readonly losses: ReturnType<typeof lossesOf>;
}

function requestOf({ deployment }: Release, { asker, report, losses }: Losing): GatedRequest {
  const { org_id, project_id, slug, commit, number } = deployment;
  return {
    caller: { org_id, ...asker },
    ...{ method: "POST", route: "deployments.create", path: `/v1/projects/${slug}/deployments` },
    ...{ resources: [project_id], params: {}, query: {}, body: { commit, loses: sameLosses(losses) } },
    ...{ secrets: [], summary: "Deploy a commit whose release command removes data", project_id, target: commit },
    detail: { commit, deployment: number, rehearsal: rehearsalLines(report).slice(0, 100) },
  };
}
