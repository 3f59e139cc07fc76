import type { Result } from "../../contract/routes.ts";
import { countOpen } from "../alerts/alerts.ts";
import type { Handlers } from "../context.ts";
import { liveControlPlanes } from "../control-planes/control-planes.ts";
import { overallStatus } from "../status/status.ts";
import { admitMachine, joinMachine, removeMachine, showMachines } from "./machines.ts";
import * as queries from "./queries.ts";
import { moveProject, showRuntime } from "./runtimes.ts";

export const platform: Handlers<"platform"> = {
  runtime: (ctx) => showRuntime(ctx),

  move: (ctx, { body }) => moveProject(ctx, body.runtime),

  machines: (ctx) => showMachines(ctx),

  join: (ctx) => joinMachine(ctx),

  drain: (ctx, { params, body }) => admitMachine(ctx, params.machine, body.takes_replicas),

  dismiss: (ctx, { params }) => removeMachine(ctx, params.machine),

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
      machines: machines.map((machine) => present(machine, now)),
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
