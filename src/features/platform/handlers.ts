import type { Result } from "../../contract/routes.ts";
import type { MachinePool } from "../../ports/machines.ts";
import { recordEvent } from "../activity/activity.ts";
import { countOpen } from "../alerts/alerts.ts";
import { newestSource, requestBuild } from "../builds/builds.ts";
import type { Context, Handlers } from "../context.ts";
import { readVersion } from "../../kit/own-version.ts";
import { liveControlPlanes } from "../control-planes/control-planes.ts";
import { comingDeployment } from "../deployments/deployments.ts";
import { requireRoomForBuild } from "../disk/disk.ts";
import { markVariablesChanged } from "../env/env.ts";
import { bucketStarts, ranges, selectEdgeBuckets, selectMachineBuckets } from "../metrics/metrics.ts";
import { overallStatus } from "../status/status.ts";
import { createBackup, listBackups } from "./backups.ts";
import * as queries from "./queries.ts";
import { finalizePlatform, showVersions, upgradePlatform } from "./versions.ts";

export const platform: Handlers<"platform"> = {
  versions: ({ platform }) => showVersions(platform),

  upgrade: (ctx, { body }) =>
    upgradePlatform(ctx, { source: body.source ?? null, without_backup: body.without_backup ?? false }),

  finalize: (ctx) => finalizePlatform(ctx),

  backups: listBackups,

  back_up: createBackup,

  runtime: (ctx) => showRuntime(ctx),

  move: (ctx, { body }) => moveProject(ctx, body.runtime),

  machines: async ({ platform }) => ({ machines: [...((await platform.ports.runtime.machines?.list()) ?? [])] }),

  join: async (ctx) => ({ script: await poolOf(ctx).joinScript() }),

  /** Sets whether a machine accepts new replicas. A draining machine keeps its own until their projects are restarted. */
  async drain(ctx, { params: { machine: id }, body: { takes_replicas } }) {
    const pool = poolOf(ctx);
    const { name } = await machineOf(ctx, pool, id);
    const { db, wakeups } = ctx.platform;
    ctx.note({ target: name, resource: id, detail: { takes_replicas } });
    const outcome = async () => {
      if (!(await pool.admit(id, takes_replicas))) return ctx.fail("not_found");
      const ids = takes_replicas ? [] : await pool.projectsOn(id);
      const projects = await queries.projectsNamed(db, ids);
      await db.transaction().execute(async (tx) => {
        for (const project of projects) await markVariablesChanged(wakeups, tx, project);
      });
      return { moving: projects.length };
    };
    return { changesLate: true, outcome };
  },

  /** Removes a machine. A dry run and the approval show which projects the swarm still counts on it. */
  async dismiss(ctx, { params: { machine: id } }) {
    const pool = poolOf(ctx);
    const { name, replicas, state, takes_replicas, role } = await machineOf(ctx, pool, id);
    if (role === "manager")
      return ctx.fail("conflict", {
        error: `${name} is a manager of the swarm, so it cannot be removed.`,
        hint: "`docker node demote` makes it a worker. The machine that Berth itself uses must stay a manager.",
      });
    if (state === "ready" && (takes_replicas || replicas > 0))
      return ctx.fail("conflict", {
        error: `${name} is not drained: ${replicas} replicas run on it.`,
        hint: "Drain it first, and wait until `berth machines` shows no replicas on it.",
      });
    const projects = await queries.projectsNamed(ctx.tx, await pool.projectsOn(id));
    const detail = { state, replicas, projects: projects.map((each) => `${each.org}/${each.slug}`) };
    ctx.note({ target: name, resource: id, detail });
    return { changesLate: true, outcome: async () => void (await pool.remove(id)) };
  },

  async overview(ctx) {
    const { tx, now, platform } = ctx;
    const counts = await queries.countProjects(tx);
    const owned = await queries.countBelongings(tx);
    const live = new Map((await liveControlPlanes(tx)).map(({ name, roles }) => [name, roles]));
    const machines = (await queries.listMachines(tx)).map((row) => ({ ...row, roles: live.get(row.name) ?? [] }));
    // A control plane without the role `git` may be a second process on the same machine and runs no applications, so it adds no capacity.
    const running = machines.filter(({ roles }) => roles.length === 0 || roles.includes("git"));
    return {
      version: platform.version,
      commit: readVersion().commit,
      newer_version: platform.releases.newer(),
      status: await overallStatus(tx, now),
      open_alerts: await countOpen(tx),
      organizations: { total: counts.organizations, suspended: counts.suspended },
      projects: { total: counts.projects, deleted: counts.deleted, serving: counts.serving },
      replicas: counts.replicas,
      deployments_today: await queries.countDeployments(tx),
      databases: { total: owned.databases, ready: owned.ready, failed: owned.failed },
      backups: { total: owned.backups, size_bytes: owned.backup_bytes },
      domains: { total: owned.domains, serving: owned.serving },
      cron_jobs: owned.cron_jobs,
      capacity: capacityOf(running, counts.replicas),
      most_failing: await queries.mostFailing(tx),
      slowest: await queries.slowest(tx),
      last_drills: await queries.lastDrills(tx),
      machines: machines.map((machine) => present(machine, now)),
    };
  },

  async metrics({ tx, now }, { query: { range } }) {
    const starts = bucketStarts(range, now);
    const key = { bucket_seconds: ranges[range].bucketSeconds, from: starts[0] ?? now };
    const times = starts.map((start) => start.toISOString());
    const machines = await selectMachineBuckets(tx, key);
    const edges = new Map((await selectEdgeBuckets(tx, key)).map((bucket) => [bucket.at, bucket]));
    return {
      ...{ range, bucket_seconds: key.bucket_seconds, times },
      machines: (await queries.listMachines(tx)).map(({ name, description }) => {
        const own = new Map(machines.filter(({ machine }) => machine === name).map((bucket) => [bucket.at, bucket]));
        const { cpus, memory_bytes, disk } = description;
        return {
          ...{ name, cpus, memory_bytes, disk_bytes: disk.total_bytes },
          used: {
            cpus: times.map((at) => own.get(at)?.cpus ?? null),
            memory_bytes: times.map((at) => own.get(at)?.memory_bytes ?? null),
            disk_bytes: times.map((at) => own.get(at)?.disk_bytes ?? null),
          },
        };
      }),
      edges: {
        requests: times.map((at) => edges.get(at)?.requests ?? 0),
        errors: times.map((at) => edges.get(at)?.errors ?? 0),
        bytes_out: times.map((at) => edges.get(at)?.bytes_out ?? 0),
      },
    };
  },
};

type Machine = Awaited<ReturnType<typeof queries.listMachines>>[number];
type Overview = Result<"platform.overview">;

/** Compares the machines' resources with what all replicas may use together if each reaches its limits. */
function capacityOf(machines: readonly Machine[], replicas: number): Overview["capacity"] {
  const sum = (read: (machine: Machine) => number) => machines.reduce((total, machine) => total + read(machine), 0);
  const largest = (read: (machine: Machine) => number) => Math.max(0, ...machines.map(read));
  return {
    memory_bytes: {
      requested: replicas * largest(({ description }) => description.replica.memory_bytes),
      available: sum(({ description }) => description.memory_bytes),
    },
    cpus: {
      requested: replicas * largest(({ description }) => description.replica.cpus),
      available: sum(({ description }) => description.cpus),
    },
  };
}

function present(
  { name, roles, started_at, seen_at, description }: Machine & { readonly roles: readonly string[] },
  now: Date,
): Overview["machines"][number] {
  const { isolation, missing, disk, ...plain } = description;
  const uptime_seconds = Math.max(0, Math.floor((now.getTime() - Date.parse(started_at)) / 1000));
  const used_bytes = disk.used_bytes === null ? null : { ...disk.used_bytes };
  return {
    name,
    roles: [...roles],
    started_at,
    uptime_seconds,
    seen_at,
    ...plain,
    isolation: [...isolation],
    missing: [...missing],
    disk: { ...disk, used_bytes },
  };
}

type Changing = Context<"platform.join"> | Context<"platform.drain"> | Context<"platform.dismiss">;

function poolOf(ctx: Changing): MachinePool {
  const oneMachine = {
    error: "This platform runs applications on one machine.",
    hint: "With the setting BERTH_RUNTIME=swarm it runs them on the machines of a Docker Swarm.",
  };
  return ctx.platform.ports.runtime.machines ?? ctx.fail("conflict", oneMachine);
}

async function machineOf(ctx: Changing, pool: MachinePool, id: string) {
  return (await pool.list()).find((machine) => machine.id === id) ?? ctx.fail("not_found");
}

type Shown = Result<"platform.runtime">;

/** Returns the runtime of `ctx.project`, and the state of its newest move. */
async function showRuntime(ctx: Context<"platform.runtime"> | Context<"platform.move">): Promise<Shown> {
  const { tx, project, platform } = ctx;
  const available = (await platform.ports.runtime.describe()).name.split(",");
  const active = await queries.activeImage(tx, project.key);
  const move = await queries.newestMove(tx, project.key);
  return {
    runtime: active === undefined ? null : (active.runtime ?? available[0] ?? null),
    available,
    move: move === undefined ? null : presentMove(move),
  };
}

type Move = NonNullable<Awaited<ReturnType<typeof queries.newestMove>>>;

function presentMove({ runtime, build_id, created_at, build, deployment, ...failures }: Move): Shown["move"] {
  const failure = failures.deployment_failure ?? failures.build_failure;
  return { to: runtime, build_id, requested_at: created_at, status: statusOf(build, deployment), failure };
}

function statusOf(build: string, deployment: string | null): NonNullable<Shown["move"]>["status"] {
  if (build === "queued" || build === "running") return "building";
  if (build !== "succeeded" || deployment === "failed" || deployment === "superseded") return "failed";
  return deployment === "active" || deployment === "retired" ? "done" : "deploying";
}

/** Queues a build of the live commit for another runtime. Until it is healthy nothing changes, and a rollback returns. */
async function moveProject(ctx: Context<"platform.move">, runtime: string): Promise<Shown> {
  const { tx, project, platform, caller } = ctx;
  const now = await showRuntime(ctx);
  if (!now.available.includes(runtime))
    return ctx.fail("conflict", {
      error: `This platform does not have the runtime ${runtime}: it has ${now.available.join(" and ")}.`,
      hint: "The setting BERTH_RUNTIME names all runtimes of a platform, as in BERTH_RUNTIME=process,docker.",
    });
  if (now.runtime === runtime)
    return ctx.fail("conflict", { error: `The project already runs in ${runtime}.`, hint: "No action is needed." });
  await requireRoomForBuild(ctx);
  const { org_id, project_id } = project.key;
  const active = await queries.activeImage(tx, project.key);
  const source = active && (await newestSource(tx, org_id, project_id, active.commit));
  if (source === undefined) return ctx.fail("nothing_to_deploy");
  if (await comingDeployment(tx, org_id, project_id)) return ctx.fail("deploy_in_progress");
  const { commit, branch, message, author } = source;
  await requestBuild(tx, platform.wakeups, {
    ...{ ...project.key, origin: "redeploy", commit, branch, message, author, old_commit: null, lease_owner: null },
    ...{ runtime, requested_by: caller.token_name, copies_data: caller.approval_mode, token_id: caller.token_id },
  });
  const event = { action: "project.moved", target: project.slug, detail: { runtime } } as const;
  if (org_id !== caller.org_id) await recordEvent(tx, { org_id, project_id, ...event });
  ctx.note({ target: event.target, detail: event.detail });
  return showRuntime(ctx);
}
