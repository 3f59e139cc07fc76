import { setTimeout as sleep } from "node:timers/promises";
import { closeInterrupted, endBuild, interrupted, takeQueued, type TakenBuild } from "../../features/builds/builds.ts";
import { deployBuild } from "../../features/deployments/deployments.ts";
import { variablesOf } from "../../features/env/env.ts";
import { redactor } from "../../kit/redact.ts";
import type { Image } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";
import { releaseDeadLeases, type Lease } from "../../store/leases.ts";
import { createBuildLog, type BuildLog } from "../build-log.ts";
import type { Task } from "../driver.ts";
import { createLeasedWork } from "../leased-work.ts";
import type { World } from "../world.ts";

const waitForTurnMs = 100;

/** Builds what is queued, at most one per project at a time, and asks for the deployment of what came out. */
export function buildsTask(world: World, wake: () => void): Task {
  const work = createLeasedWork<TakenBuild>(world.db, world.log, {
    limit: world.settings.concurrentBuilds,
    take: () => takeQueued(world.db, world.owner),
    leaseOf: (build) => leaseOf(world, build),
    work: (build, signal) => perform(world, build, signal),
    broken: (build, _error, stopping) => abandon(world, build, stopping ? interrupted : platformFault),
  });
  return {
    name: "builds",
    periodMs: 2000,
    topics: ["builds"],
    async run(signal) {
      await releaseDeadLeases(world.db, "build");
      for (const build of await closeInterrupted(world.db, interrupted)) {
        world.log.warn({ build: build.id, status: build.status }, "closed a build whose control plane ended");
        if (build.status === "failed") await world.ports.repositories.unpin(build.project_id, build.id);
      }
      const running = await work.fill(signal, wake);
      return { detail: `${running} running` };
    },
    settle: () => work.settle(),
  };
}

const platformFault: Failure = {
  stage: "build",
  code: "platform_fault",
  summary: "The platform itself failed while it worked on this.",
  hint: "Try again; the operator's log says more.",
  log_tail: [],
};

function leaseOf(world: World, build: TakenBuild): Lease {
  return { table: "build", id: build.id, owner: world.owner, fence: build.fence };
}

async function perform(world: World, build: TakenBuild, signal: AbortSignal): Promise<void> {
  const { org_id, project_id } = build;
  const variables = await variablesOf(world.db, world.vault, { org_id, project_id });
  const log = createBuildLog(world.ports.logStore, build.id, redactor(Object.values(variables)));
  const outcome = await world.ports.builder.build({
    build_id: build.id,
    project_id,
    project_number: build.project_number,
    source: () => world.ports.repositories.archive(project_id, build.commit),
    env: variables,
    limits: world.settings.buildLimits,
    signal,
    onLine: (line) => log.line(line),
  });
  switch (outcome.outcome) {
    case "built":
      return succeed({ world, build, log, signal }, outcome.image);
    case "failed":
      return fail({ world, build, log, signal }, outcome.failure);
    case "cancelled":
      return abandon(world, build, interrupted);
  }
}

interface Built {
  readonly world: World;
  readonly build: TakenBuild;
  readonly log: BuildLog;
  readonly signal: AbortSignal;
}

/** The build's end and its deployment's beginning are one change. A deployment that is under way is waited for. */
async function succeed({ world, build, log, signal }: Built, image: Image): Promise<void> {
  await log.flush();
  const { org_id, project_id, commit, old_commit, branch, origin } = build;
  const owner = origin === "push" ? world.owner : null;
  const source = { org_id, project_id, build_id: build.id, commit, old_commit, branch, image, trigger: origin, owner };
  for (let waiting = false; !signal.aborted; waiting = true) {
    const made = await world.db.transaction().execute(async (tx) => {
      const deployment = await deployBuild(world, tx, source);
      if (
        deployment.outcome === "made" &&
        !(await endBuild(tx, leaseOf(world, build), { status: "succeeded", image }))
      ) {
        throw new Error("the lease of the build was lost");
      }
      return deployment;
    });
    if (made.outcome === "made") return;
    if (made.outcome === "project_deleted") return refuse({ world, build, log, signal }, deletedMeanwhile);
    if (made.outcome === "branch_moved") return refuse({ world, build, log, signal }, branchMoved);
    if (!waiting) log.detail("Waiting for the deployment that is under way");
    await sleep(waitForTurnMs);
  }
  await abandon(world, build, interrupted);
}

const deletedMeanwhile: Failure = {
  stage: "switch",
  code: "project_deleted",
  summary: "The project was deleted while it was being built.",
  hint: "Undelete it and push again.",
  log_tail: [],
};

const branchMoved: Failure = {
  stage: "switch",
  code: "branch_moved",
  summary: "Another push moved the branch while this one was being built.",
  hint: "Fetch, merge and push again.",
  log_tail: [],
};

/** What the builder did not say itself. */
function refuse(built: Built, failure: Failure): Promise<void> {
  built.log.problem(failure.summary);
  built.log.problem(failure.hint);
  return fail(built, failure);
}

async function fail({ world, build, log }: Built, failure: Failure): Promise<void> {
  await log.flush();
  await endBuild(world.db, leaseOf(world, build), { status: "failed", failure });
  await finished(world, build);
}

async function abandon(world: World, build: TakenBuild, failure: Failure): Promise<void> {
  const log = createBuildLog(world.ports.logStore, build.id, (text) => text);
  log.problem(failure.summary);
  log.problem(failure.hint);
  await log.flush();
  await endBuild(world.db, leaseOf(world, build), { status: "failed", failure });
  await finished(world, build);
}

async function finished(world: World, build: TakenBuild): Promise<void> {
  await world.wakeups.send(world.db, "outcomes", build.id);
  await world.wakeups.send(world.db, "builds", build.project_id);
}
