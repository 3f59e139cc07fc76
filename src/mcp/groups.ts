import type { RouteName } from "../contract/routes.ts";

/** A noun of the API as tools: its reading rows become the tool `name`, its changing ones the tool `name_change`. */
export interface Group {
  readonly name: string;
  readonly about: string;
  /** Row names, by the action's name in the tool. */
  readonly actions: Readonly<Record<string, RouteName>>;
}

/** How the API's rows are grouped into tools. Rows missing here are reached through `api_call`. */
export const groups: readonly Group[] = [
  {
    name: "projects",
    about: "Projects and what happened to them.",
    actions: {
      list: "projects.list",
      get: "projects.get",
      overview: "overview.get",
      disk: "disk.get",
      timeline: "timeline.list",
      activity: "activity.list",
      create: "projects.create",
      settings: "projects.settings",
      maintenance: "projects.maintenance",
      remove_files: "disk.remove",
      delete: "projects.delete",
      undelete: "projects.undelete",
    },
  },
  {
    name: "deployments",
    about: "Deployments, builds, their logs. A git push deploys, and so does write_files, without git.",
    actions: {
      list: "deployments.list",
      builds: "builds.list",
      build: "builds.get",
      build_log: "builds.logs",
      files: "builds.source",
      plan: "builds.plan",
      write_files: "builds.change",
      cancel: "builds.cancel",
      rehearse: "deployments.rehearse",
      deploy: "deployments.create",
      rollback: "deployments.rollback",
      compare: "deployments.compare",
      rehearsal: "deployments.rehearsal",
      scale: "deployments.scale",
      processes: "processes.list",
      scale_process: "processes.set",
      restart: "processes.restart",
      runs: "runs.list",
      run_output: "runs.get",
      run: "runs.create",
      followed: "follow.get",
      fetch: "follow.fetch",
    },
  },
  { name: "logs", about: "Log lines of an application or its newest build.", actions: { list: "logs.list" } },
  {
    name: "metrics",
    about: "Traffic, errors, latency, processor, memory; single requests; the slowest and failing paths.",
    actions: { get: "metrics.get", requests: "requests.list", paths: "requests.paths" },
  },
  {
    name: "env",
    about: "Environment variables. Values can be written, never read.",
    actions: { list: "env.list", set: "env.set", import: "env.import", delete: "env.delete" },
  },
  {
    name: "domains",
    about: "Hostnames, their DNS records and certificates.",
    actions: { list: "domains.list", attach: "domains.attach", detach: "domains.detach" },
  },
  {
    name: "cron",
    about: "Cron jobs: requests to the application, or commands in its image, on a schedule.",
    actions: {
      list: "cron.list",
      runs: "cron.runs",
      set: "cron.set",
      restore: "cron.restore",
      run: "cron.run",
      delete: "cron.delete",
    },
  },
  {
    name: "database",
    about: "The project's PostgreSQL database: state, tables and rows.",
    actions: {
      get: "database.get",
      tables: "data.tables",
      rows: "data.rows",
      query: "data.query",
      branches: "branches.list",
      branch: "branches.get",
      create: "database.create",
      create_branch: "branches.create",
      delete_branch: "branches.delete",
      insert_row: "data.insert",
      delete_row: "data.delete",
    },
  },
  {
    name: "backups",
    about: "Backups of the database and files. A restore goes into a new database or folder; live data stays as it is.",
    actions: {
      list: "backups.list",
      get: "backups.get",
      restored: "backups.restored",
      archive: "backups.archive",
      drills: "backups.drills",
      create: "backups.create",
      restore: "backups.restore",
      verify: "backups.verify",
      run_drill: "backups.run_drill",
      promote: "backups.promote",
      drop: "backups.drop",
    },
  },
  {
    name: "approvals",
    about: "Requests that wait for a human's decision. They cannot be decided here.",
    actions: { list: "approvals.list", get: "approvals.get" },
  },
];
