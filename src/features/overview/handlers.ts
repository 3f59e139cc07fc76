import type { attentions } from "../../contract/overview.ts";
import type { Health } from "../../contract/health.ts";
import type { Result } from "../../contract/routes.ts";
import type { Handlers, HandlerPlatform } from "../context.ts";
import { readHealth } from "../health/health.ts";
import { hourParts, selectOrganization, selectOverview, type OverviewRow } from "./queries.ts";

export const overview: Handlers<"overview"> = {
  async get(ctx) {
    const { caller, platform } = ctx;
    // A whole hour: the current minute and the 60 before it.
    const hourFrom = new Date(Math.floor(ctx.now.getTime() / 60_000 - 60) * 60_000);
    const [all, organization, health] = await Promise.all([
      selectOverview(ctx.tx, caller, { hourFrom, limits: platform.settings.disk }),
      selectOrganization(ctx.tx, caller),
      readHealth(ctx.tx, caller.org_id, ctx.now),
    ]);
    // A project that was created between the two reads comes with the next one.
    const shown = <More extends object>(row: OverviewRow, more: More) => {
      const own = health.get(row.id);
      return own === null || own === undefined ? [] : [{ ...presentRow(platform, row, own), ...more }];
    };
    const rows = all.filter(({ preview_of }) => preview_of === null);
    const projects = rows.flatMap((row) => shown(row, {}));
    const previews = all.flatMap((row) => (row.preview_of === null ? [] : shown(row, { preview_of: row.preview_of })));
    const sum = (pick: (row: OverviewRow) => number) => rows.reduce((total, row) => total + pick(row), 0);
    return {
      organization: { slug: caller.org_slug, name: caller.org_name, max_projects: organization.max_projects },
      totals: {
        projects: rows.length,
        serving: rows.filter((row) => row.ready > 0).length,
        needing_attention: projects.filter((project) => project.attention.length > 0).length,
        requests_last_hour: sum((row) => row.requests),
        errors_last_hour: sum((row) => row.errors),
        storage_bytes: sum((row) => row.storage_bytes ?? 0),
        database_bytes: sum((row) => row.database_bytes ?? 0),
        images_bytes: sum((row) => row.images_bytes ?? 0),
        approvals_pending: organization.approvals_pending,
        alerts: caller.platform_admin ? organization.alerts : null,
      },
      projects,
      previews,
    };
  },
};

type Shown = Result<"overview.get">["projects"][number];

function presentRow({ addresses }: Pick<HandlerPlatform, "addresses">, row: OverviewRow, health: Health): Shown {
  const { id, slug, name, hostname, ready, requests, errors, database, storage_bytes } = row;
  return {
    id,
    slug,
    name,
    state: row.deleted_at === null ? "active" : "deleted",
    url: addresses.appUrl(hostname),
    active_deployment: row.active,
    last_deployment: row.last,
    replicas: { ready, wanted: row.active === null ? 0 : row.replicas },
    last_hour: { requests, errors, parts: requests === 0 ? [] : partsOf(row) },
    database,
    last_backup: row.backup,
    storage_bytes,
    database_bytes: row.database_bytes,
    images_bytes: row.images_bytes,
    health,
    attention: attentionOf(row, health),
  };
}

function partsOf({ parts }: OverviewRow): Shown["last_hour"]["parts"] {
  return Array.from({ length: hourParts }, (_, index) => {
    const { requests = 0, errors = 0 } = parts?.find(({ part }) => part === index) ?? {};
    return { requests, errors };
  });
}

function attentionOf(row: OverviewRow, { state }: Health): (typeof attentions)[number][] {
  const reasons: Readonly<Record<(typeof attentions)[number], boolean>> = {
    deploy_failed: row.last?.status === "failed",
    build_failed: row.build_failed,
    crashing: state === "crashing",
    replicas_missing: row.active !== null && row.ready < row.replicas,
    database_failed: row.database === "failed",
    backup_failed: row.backup?.status === "failed",
    maintenance: row.maintenance,
    storage_over_limit: row.storage_over_limit,
    database_over_limit: row.database_over_limit,
    images_over_limit: row.images_over_limit,
    hostname_waiting: row.hostname_waiting,
    hostname_lost: row.hostname_lost,
    certificate_failed: row.certificate_failed,
    certificate_ending: row.certificate_ending,
  };
  return (Object.keys(reasons) as (typeof attentions)[number][]).filter((reason) => reasons[reason]);
}
