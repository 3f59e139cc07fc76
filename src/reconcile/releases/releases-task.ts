import { isOfBuild } from "../../contract/states.ts";
import { interrupted } from "../../features/builds/builds.ts";
import { importCrons } from "../../features/cron/cron.ts";
import { awaken, databaseOfDeployment, specOf } from "../../features/database/database.ts";
import * as deployments from "../../features/deployments/deployments.ts";
import { web, workloadId } from "../../features/replicas/replicas.ts";
import { awaitEdges } from "../../features/routes/routes.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Tx } from "../../store/database.ts";
import { renewLease, requireLease } from "../../store/leases.ts";
import { awaitRuntime, runtimeFailure } from "../await-runtime.ts";
import { createBuildLog } from "../build-log.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { isBranchFree, moveBranch } from "../repositories/move-branch.ts";
import { redactorOf, workloadOf } from "../workload.ts";
import { clearAbandoned } from "./clear-rehearsals.ts";
import { rehearse } from "./rehearse.ts";
import { explainFailure } from "./explain-failure.ts";
import { branchMoved, edgeUnavailable, imageMissing, notServed, releaseFailure } from "./release-failures.ts";
import { runReleaseCommand } from "./run-release-command.ts";
import { startProcesses, type Release } from "./start-processes.ts";
import type { Taken } from "./taken.ts";

/** Takes new deployments into service: release command, start, health checks, traffic switch. */
export function releasesTask(platform: Platform, wake: () => void): Task {
  return createLeasedTask<deployments.TakenDeployment>(platform, wake, {
    name: "releases",
    periodMs: 1000,
    topics: ["releases"],
    table: "deployment",
    limit: platform.settings.concurrentReleases,
    perOrganization: Math.max(1, platform.settings.concurrentReleases - 2),
    take: (inProgress) => deployments.takeDeployment(platform.db, platform.owner, inProgress),
    work: (deployment, lease, signal) => perform({ platform, deployment, lease }, signal),
    broken: async (deployment, lease, stopping) =>
      giveUp({ platform, deployment, lease }, stopping ? interrupted : await faultOf(platform, deployment)),
    before: async () => {
      await clearAbandoned(platform);
      await restartChanged(platform);
    },
  });
}

const platformFault = releaseFailure(
  "boot",
  "platform_fault",
  "The platform failed with an internal error while it deployed this.",
);

async function faultOf(
  platform: Platform,
  { project_id, image, commit }: deployments.TakenDeployment,
): Promise<Failure> {
  const unavailable = await runtimeFailure(platform, image.runtime);
  if (unavailable !== undefined) return unavailable;
  const images = await platform.ports.builder.images(project_id);
  return images.includes(image.image_ref) ? platformFault : imageMissing(commit);
}

async function perform(taken: Taken, signal: AbortSignal): Promise<void> {
  const { platform, deployment } = taken;
  if (isLost(deployment)) {
    await close(taken, interrupted);
    return platform.ports.repositories.unpin(deployment.project_id, deployment.build_id);
  }
  if (deployment.deleted_at !== null) return giveUp(taken, notServed.project_deleted);
  if (deployment.suspended_at !== null) return giveUp(taken, notServed.org_suspended);
  if (isOfBuild(deployment.trigger) && (await deployments.hasTokenEnded(platform.db, deployment.build_id)))
    return giveUp(taken, notServed.token_ended);
  const workload = await workloadOf(platform, deployment, web);
  const log = createBuildLog(platform, readAlong(deployment), redactorOf(workload));
  const processes = await deployments.processesOf(platform.db, deployment.id);
  const release: Release = { ...taken, workload, processes, log, signal };
  if (deployment.rehearse_only) return rehearseOnly(release);
  await awaken(platform, await databaseOfDeployment(platform.db, deployment), signal);
  await (await databaseSwitch(taken))?.prepare();
  const failure =
    (await awaitRuntime(platform, deployment.image.runtime, release)) ??
    (await runReleaseCommand(release)) ??
    (await startProcesses(release)) ??
    (await switchTraffic(release));
  if (failure === undefined) return;
  if (signal.aborted) return giveUp(taken, interrupted);
  const told = await explain(release, failure);
  await close(taken, { ...told, log_tail: log.tail() });
}

/** Runs the release command on a copy of the data, and nothing else. */
async function rehearseOnly(release: Release): Promise<void> {
  const { platform, deployment, lease, log, signal } = release;
  const { image, project_id, build_id, id } = deployment;
  const outcome =
    (await awaitRuntime(platform, image.runtime, release)) ?? (await rehearse(release, image.release_command));
  if (signal.aborted) return giveUp(release, interrupted);
  if (typeof outcome === "string") {
    log.step("The rehearsal has ended; nothing of it goes live");
    await log.flush();
    await deployments.endRehearsed(platform.db, lease);
    await platform.wakeups.send(platform.db, "outcomes", id);
  } else await close(release, { ...(await explain(release, outcome)), log_tail: log.tail() });
  // The image of a preview came with its commit.
  await platform.ports.repositories.unpin(project_id, build_id);
}

/**
 * Returns whether an abandoned deployment must fail. A push fails because its pusher saw it fail when the control plane died. Any other
 * deployment is retried once: one that kills the control plane twice would do so for ever.
 */
function isLost({ abandoned, trigger, fence }: deployments.TakenDeployment): boolean {
  return abandoned && (trigger === "push" || fence > 2);
}

/** Routes requests to the deployment and activates it once every live edge has confirmed; a failure moves the route back. */
async function switchTraffic(release: Release): Promise<Failure | undefined> {
  const { platform, deployment, lease, signal } = release;
  signal.throwIfAborted();
  if (movesBranch(deployment) && !(await isBranchFree(platform, deployment))) return branchMoved;
  await requireLease(platform.db, lease);
  await (await databaseSwitch(release))?.leave();
  const routed = await platform.db.transaction().execute((tx) => deployments.routeTo(tx, lease, deployment));
  if (routed !== "done") return notSwitched(release, routed);
  const edges = await awaitEdges(platform, { timeoutMs: platform.settings.edgeConfirmMs, signal });
  if (edges !== "confirmed") return edgeUnavailable;
  const activated = await platform.db.transaction().execute(async (tx) => {
    const done = await deployments.activate(tx, lease, deployment);
    if (done === "done" && isOfBuild(deployment.trigger)) await applyCrons(release, tx);
    return done;
  });
  if (activated !== "done") return notSwitched(release, activated);
  await announce(release);
  return undefined;
}

const movesBranch = ({ trigger }: deployments.TakenDeployment): boolean => isOfBuild(trigger) && trigger !== "redeploy";

function notSwitched(
  { platform, deployment }: Release,
  obstacle: Exclude<deployments.Switched, "done">,
): Failure | undefined {
  if (obstacle !== "lease_lost") return notServed[obstacle];
  platform.log.warn({ deployment: deployment.id }, "a deployment was cancelled while it was being released");
  return undefined;
}

/** Imports the cron jobs of the commit's berth.json in the transaction that activates the deployment. */
async function applyCrons({ platform, deployment, log }: Release, tx: Tx): Promise<void> {
  const { org_id, project_id, settings } = deployment;
  const { crons = [] } = settings ?? {};
  // Jobs run in the project itself, not in its previews.
  if (deployment.preview_of !== null) return;
  if (crons.length === 0) return;
  const imported = await importCrons({ tx, now: platform.clock.now() }, { org_id, project_id }, crons);
  if (imported === "too_many")
    return log.problem("The cron jobs of berth.json were not created: the project would have too many.");
  if (imported.changed > 0) log.detail(`Cron jobs changed: ${imported.changed} of ${imported.jobs.length}`);
  await platform.wakeups.send(tx, "cron", project_id);
}

/** Stores the complete log before announcing the switch, so that followers see all of it. */
async function announce(release: Release): Promise<void> {
  const { platform, deployment, lease, log, processes } = release;
  const isReached = processes.some(({ process }) => process === web);
  log.step(`Live${isReached ? ` at ${platform.appUrl(deployment.hostname)}` : ""} (deployment ${deployment.number})`);
  if (isReached && deployment.in_maintenance)
    log.detail("Visitors get the maintenance page until you run: berth maintenance off");
  await log.flush();
  // git moves the branch of a push itself. For an upload or a followed branch, move it here, so that the next upload finds it at the deployed commit.
  if (movesBranch(deployment) && deployment.trigger !== "push")
    await moveBranch(platform, deployment).catch((error: unknown) => notMoved(release, error));
  await deployments.endSwitch(platform.db, lease);
  await platform.wakeups.send(platform.db, "metrics", deployment.project_id);
  await platform.wakeups.send(platform.db, "outcomes", deployment.id);
  await platform.wakeups.send(platform.db, "apps", deployment.project_id);
}

/** The `repositories` task retries it. */
function notMoved({ platform, deployment }: Release, error: unknown): void {
  platform.log.warn({ err: error, project_id: deployment.project_id }, "a branch could not be moved yet");
}

/** Shows the pusher the application's last log lines and a hint; returns the explained failure. */
async function explain(release: Release, judged: Failure): Promise<Failure> {
  const { workload, log } = release;
  const isOfApp = judged.stage === "boot" || judged.stage === "health";
  const words = isOfApp ? await lastWords(release).catch((error: unknown) => unheard(release, error)) : log.tail();
  const failure = explainFailure(judged, { words, hasDatabase: workload.env["DATABASE_URL"] !== undefined });
  if (isOfApp && words.length > 0) {
    log.step("The application's last log lines");
    for (const line of words.slice(-20)) log.detail(line);
  }
  log.problem(failure.summary);
  log.problem(failure.hint);
  // Some edges may have switched and gone back.
  const traffic = failure.stage === "switch" ? "" : " No traffic was switched.";
  log.problem(`The deployment failed (${failure.code}).${traffic}`);
  await log.flush();
  return failure;
}

async function lastWords({ platform, deployment, workload, processes }: Release): Promise<string[]> {
  const observed = await platform.ports.runtime.observe();
  for (const { process } of processes) {
    const workload_id = workloadId({ deployment_id: deployment.id, process });
    await platform.ingestOutput({
      ...{ workload_id, process, project_id: deployment.project_id, deployment: deployment.number },
      instances: observed.filter((instance) => instance.workload_id === workload_id),
      redactor: async () => redactorOf(workload),
    });
  }
  const page = await platform.ports.logStore.readRuntime(deployment.project_id, { limit: 200 });
  const lines = page.lines.filter((line) => line.deployment === deployment.number);
  return lines.map(({ process, text }) => (process === web ? text : `${process}: ${text}`));
}

/** Continues without log lines: failing to read them must not change the outcome. */
function unheard({ platform, deployment }: Release, error: unknown): string[] {
  platform.log.error({ err: error, deployment: deployment.id }, "an application's last log lines could not be read");
  return [];
}

/** Fails the deployment after writing the failure to its log, unless another worker has claimed it. */
async function giveUp(taken: Taken, failure: Failure): Promise<void> {
  const { platform, deployment, lease } = taken;
  if (!(await renewLease(platform.db, lease))) return;
  const log = createBuildLog(platform, readAlong(deployment), (text) => text);
  log.problem(failure.summary);
  log.problem(failure.hint);
  await log.flush();
  await close(taken, failure);
}

/** Returns the build whose log shows this deployment; null for a rollback or restart. */
function readAlong(deployment: deployments.TakenDeployment): string | null {
  return isOfBuild(deployment.trigger) ? deployment.build_id : null;
}

async function close({ platform, deployment, lease }: Taken, failure: Failure): Promise<void> {
  const change = await databaseSwitch({ platform, deployment });
  const hasFailed = await deployments.failDeployment(platform.db, lease, deployment, failure);
  if (hasFailed) await change?.comeBack().catch((error: unknown) => notWritable(platform, deployment, error));
  for (const topic of ["outcomes", "edge", "apps"] as const)
    await platform.wakeups.send(platform.db, topic, deployment.id);
}

function notWritable({ log }: Platform, { project_id }: deployments.TakenDeployment, error: unknown): void {
  log.error(
    { err: error, project_id },
    "the database in use could not be made writable after a failed switch to another",
  );
}

async function restartChanged(platform: Platform): Promise<void> {
  for (const project of await deployments.projectsToRestart(platform.db)) {
    await platform.db
      .transaction()
      .execute((tx) =>
        deployments.restartDeployment(platform, tx, { org_id: project.org_id, project_id: project.id }, "variables"),
      );
  }
}

/**
 * Prepares the switch to another database, after a promotion. The next one accepts writes, because it may be one that was left before.
 * `leave` ends all writes to the one in use, just before requests go to the new deployment: a write that is acknowledged afterwards is in
 * the next database. `comeBack` undoes that for a deployment that failed.
 */
async function databaseSwitch(taken: Pick<Taken, "platform" | "deployment">) {
  const { platform, deployment } = taken;
  const { db, vault, ports } = platform;
  const active = await deployments.activeOf(db, deployment.org_id, deployment.project_id);
  if (active === undefined || active.id === deployment.id) return undefined;
  const next = await databaseOfDeployment(db, deployment);
  const left = await databaseOfDeployment(db, { ...deployment, id: active.id });
  if (next === undefined || left === undefined || next.database_name === left.database_name) return undefined;
  const spec = specOf(vault, next);
  return {
    prepare: () => ports.postgresHost.setWritable(spec, next.database_name, true),
    leave: () => ports.postgresHost.setWritable(spec, left.database_name, false),
    comeBack: () => ports.postgresHost.setWritable(spec, left.database_name, true),
  };
}
