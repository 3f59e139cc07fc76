import { setTimeout as sleep } from "node:timers/promises";
import * as builds from "../../features/builds/builds.ts";
import { deployBuild } from "../../features/deployments/deployments.ts";
import { variablesOf } from "../../features/env/env.ts";
import { giveCommit } from "../../features/previews/previews.ts";
import { registryLogins } from "../../features/registries/registries.ts";
import { redactor } from "../../kit/redact.ts";
import type { Image } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";
import { renewLease, type Lease } from "../../store/leases.ts";
import { awaitRuntime, runtimeFailure } from "../await-runtime.ts";
import { createBuildLog, type BuildLog } from "../build-log.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";
import { explainMissingDatabase } from "../missing-database.ts";
import { branchMoved, notServed } from "../releases/release-failures.ts";
import { environmentOf, secretsIn } from "../workload.ts";
import { prepareSource } from "./prepare-source.ts";
import { createDiskRoom, untilRoom, whyNoRoom, type DiskRoom } from "./disk-room.ts";

const waitForTurnMs = 100;

/** Runs queued builds, at most one per project at a time, and requests the deployment of the result. */
export function buildsTask(platform: Platform, wake: () => void): Task {
  const diskRoom = createDiskRoom(platform.ports);
  return createLeasedTask<builds.TakenBuild>(platform, wake, {
    name: "builds",
    periodMs: 2000,
    topics: ["builds"],
    table: "build",
    limit: platform.settings.concurrentBuilds,
    perOrganization: Math.max(2, platform.settings.concurrentBuilds - 1),
    take: (inProgress) => builds.takeQueued(platform.db, platform.owner, inProgress),
    work: (build, lease, signal) => perform({ platform, build, lease, signal }, diskRoom),
    broken: async (build, lease, stopping) => {
      const fault = async () => (await runtimeFailure(platform, build.runtime ?? undefined)) ?? platformFault;
      return abandon({ platform, build, lease }, stopping ? builds.interrupted : await fault());
    },
    async before(underWay) {
      for (const build of await builds.closeInterrupted(platform.db, builds.interrupted, underWay)) {
        platform.log.warn({ build: build.id, status: build.status }, "closed a build whose control plane ended");
        if (build.status === "failed") await platform.ports.repositories.unpin(build.project_id, build.id);
      }
    },
  });
}

const platformFault: Failure = {
  stage: "build",
  code: "platform_fault",
  summary: "The platform failed with an internal error while it worked on this.",
  hint: "Try again. If the error persists, ask the operator to look at the log.",
  log_tail: [],
};

interface Taken {
  readonly platform: Platform;
  readonly build: builds.TakenBuild;
  readonly lease: Lease;
}

interface Building extends Taken {
  readonly signal: AbortSignal;
}

async function perform(building: Building, diskRoom: DiskRoom): Promise<void> {
  const { platform, build, signal } = building;
  const { org_id, project_id } = build;
  const variables = await variablesOf(platform.db, platform.vault, { org_id, project_id });
  const { env, reach } = await environmentOf(platform, build, variables);
  const registries = await registryLogins(platform.db, platform.vault, org_id);
  const secrets = [...secretsIn(env), ...registries.map(({ password }) => password)];
  const log = createBuildLog(platform, build.id, redactor(secrets));
  const refused =
    (await awaitRuntime(platform, build.runtime ?? undefined, { log, signal })) ?? (await whyNoRoom(platform, build));
  if (refused !== undefined) return refuse({ ...building, log }, refused);
  if (build.promoted_from !== null) return promote({ ...building, log }, build.promoted_from);
  const source = await prepareSource(platform, build, log);
  if ("stage" in source) return refuse({ ...building, log }, source);
  const room = diskRoom.enter(build.id, signal);
  const outcome = await platform.ports.builder
    .build({
      build_id: build.id,
      ...{ org_id, registries },
      project_id,
      project_number: build.project_number,
      ...(build.runtime === null ? {} : { runtime: build.runtime }),
      commands: source.commands,
      source: () => platform.ports.repositories.archive(project_id, build.commit, { folder: source.folder }),
      ...{ env, secrets, reach },
      limits: platform.settings.buildLimits,
      signal: room.signal,
      onLine: (line) => log.line(line),
    })
    .finally(() => room.leave());
  const shortage = room.shortage();
  if (outcome.outcome !== "built" && shortage !== undefined) {
    await untilRoom(platform, signal);
    return refuse({ ...building, log }, shortage);
  }
  switch (outcome.outcome) {
    case "built":
      return succeed({ ...building, log }, outcome.image, source.settings);
    case "failed": {
      const told = { words: outcome.failure.log_tail, hasDatabase: env["DATABASE_URL"] !== undefined };
      const failure = explainMissingDatabase(outcome.failure, told);
      // The builder has logged its own hint.
      if (failure !== outcome.failure) log.problem(failure.hint);
      log.problem(noSwitch(failure));
      return fail({ ...building, log }, failure);
    }
    case "cancelled":
      return abandon(building, builds.interrupted);
  }
}

interface Built extends Building {
  readonly log: BuildLog;
}

/** Gives the project the image of a preview's build instead of building. */
async function promote(built: Built, from: string): Promise<void> {
  const { platform, build, log } = built;
  const { org_id, project_id, project_number } = build;
  const found = await builds.promotedBuild(platform.db, org_id, from);
  if (!found?.image) return refuse(built, promotedGone);
  const { runtime } = found.image;
  if (build.runtime !== null && runtime !== undefined && runtime !== build.runtime)
    return refuse(built, {
      ...promotedGone,
      summary: `The image of the preview is for the runtime ${runtime}, and the project runs on ${build.runtime}.`,
    });
  log.step(`Taking the image of ${found.slug}, build ${found.number}`);
  const image = { project_id: found.project_id, image_ref: found.image.image_ref };
  const image_ref = await platform.ports.builder.adopt(image, { project_id, project_number });
  if (image_ref === null) return refuse(built, promotedGone);
  // The commit may be of no branch any more, or only of the preview.
  const { repositories } = platform.ports;
  const given = { from: found.project_id, to: project_id, commit: build.commit, quarantine: null };
  await giveCommit(repositories, { ...given, since: null, pin: build.id });
  await repositories.unpin(found.project_id, build.id);
  log.step(`Image ${image_ref.slice(7, 19)}, ${(found.image.size_bytes / 1024 / 1024).toFixed(1)} MiB`);
  return succeed(built, { ...found.image, image_ref }, found.settings ?? {});
}

const promotedGone: Failure = {
  stage: "build",
  code: "image_missing",
  summary: "The image of the preview is gone.",
  hint: "Push the preview's branch again, then promote it.",
  log_tail: [],
};

/** Ends the build and creates its deployment in one transaction, after waiting for a deployment that is in progress. */
async function succeed(built: Built, image: Image, settings: builds.DeploymentSettings): Promise<void> {
  const { platform, build, lease, log, signal } = built;
  await log.flush();
  const { org_id, project_id, commit, old_commit, branch, origin } = build;
  const owner = origin === "push" ? platform.owner : null;
  const parent = origin === "upload" ? await platform.ports.repositories.parentOf(project_id, commit) : null;
  const source = {
    org_id,
    project_id,
    build_id: build.id,
    commit,
    old_commit,
    parent,
    branch,
    image,
    settings,
    trigger: origin,
    owner,
    rehearse_only: build.rehearse_only,
  };
  for (let waiting = false; !signal.aborted; waiting = true) {
    const made = await platform.db.transaction().execute(async (tx) => {
      const deployment = await deployBuild(platform, tx, source);
      if (
        deployment.outcome === "made" &&
        !(await builds.endBuild(tx, lease, { status: "succeeded", image, settings }))
      )
        throw new Error("the lease of the build was lost");
      return deployment;
    });
    switch (made.outcome) {
      case "made":
        return;
      case "project_deleted":
      case "org_suspended":
      case "token_ended":
        return refuse(built, notServed[made.outcome]);
      case "branch_moved":
        return refuse(built, branchMoved);
      case "in_progress":
        if (!waiting) log.detail("Waiting for the deployment in progress");
        await sleep(waitForTurnMs);
    }
  }
  await abandon(built, builds.interrupted);
}

const noSwitch = ({ code }: Failure): string => `The build failed (${code}). No traffic was switched.`;

/** Ends the build with a failure, and logs it because the builder has not. */
function refuse(built: Taken & { readonly log: BuildLog }, failure: Failure): Promise<void> {
  for (const line of [failure.summary, failure.hint, noSwitch(failure)]) built.log.problem(line);
  return fail(built, failure);
}

/** Fails a build that was interrupted, unless another worker has claimed it. */
async function abandon(taken: Taken, failure: Failure): Promise<void> {
  const { platform, build, lease } = taken;
  if (!(await renewLease(platform.db, lease))) return;
  const log = createBuildLog(platform, build.id, (text) => text);
  await refuse({ ...taken, log }, failure);
}

async function fail(
  { platform, build, lease, log }: Taken & { readonly log: BuildLog },
  failure: Failure,
): Promise<void> {
  await log.flush();
  await builds.endBuild(platform.db, lease, { status: "failed", failure });
  await platform.wakeups.send(platform.db, "outcomes", build.id);
  await platform.wakeups.send(platform.db, "builds", build.project_id);
}
