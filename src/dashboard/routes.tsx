import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { loadPart } from "./data/load-part.ts";
import { Frame } from "./frame/frame.tsx";
import { NotFound } from "./frame/not-found.tsx";
import type { AlertsSearch } from "./pages/alerts/alerts.tsx";
import type { ApprovalsSearch } from "./pages/approvals/approvals-page.tsx";
import type { SourceSearch } from "./pages/builds/source-page.tsx";
import type { TableSearch } from "./pages/data/table-rows.ts";
import type { CompareSearch } from "./pages/deployments/compare-page.tsx";
import type { StorageSearch } from "./pages/disk/snapshot-choice.tsx";
import type { LogsSearch } from "./pages/logs/logs-page.tsx";
import type { RequestsSearch } from "./pages/requests/requests-page.tsx";
import type { MetricsSearch } from "./pages/metrics/metrics-page.tsx";
import { OverviewPage } from "./pages/overview/overview-page.tsx";
import type { EntriesSearch } from "./ui/entries.tsx";
import type { FilterSearch } from "./ui/filter-box.tsx";

const root = createRootRoute({ component: Frame, notFoundComponent: () => <NotFound /> });
const at = <const P extends string>(path: P) => ({ getParentRoute: () => root, path }) as const;
/** Casts the address's query to a page's type, unchecked: pages write it, and it is seldom typed by hand. */
const search =
  <T,>() =>
  (given: Record<string, unknown>): T =>
    given as T;
const page = <T extends Record<string, unknown>, K extends keyof T & string>(load: () => Promise<T>, name: K) =>
  lazyRouteComponent(() => loadPart(load), name);

const project = createRoute({
  ...at("/projects/$slug"),
  component: page(() => import("./frame/project-frame.tsx"), "ProjectFrame"),
});
const within = <const P extends string>(path: P) => ({ getParentRoute: () => project, path }) as const;
const projectRoutes = [
  createRoute({ ...within("/"), component: page(() => import("./pages/projects/project-page.tsx"), "ProjectPage") }),
  createRoute({
    ...within("deployments"),
    component: page(() => import("./pages/deployments/deployments-page.tsx"), "DeploymentsPage"),
  }),
  createRoute({
    ...within("previews"),
    component: page(() => import("./pages/previews/previews-page.tsx"), "PreviewsPage"),
  }),
  createRoute({
    ...within("compare"),
    validateSearch: search<CompareSearch>(),
    component: page(() => import("./pages/deployments/compare-page.tsx"), "ComparePage"),
  }),
  createRoute({
    ...within("files"),
    validateSearch: search<SourceSearch>(),
    component: page(() => import("./pages/builds/source-page.tsx"), "SourcePage"),
  }),
  createRoute({ ...within("builds/$id"), component: page(() => import("./pages/builds/build-page.tsx"), "BuildPage") }),
  createRoute({
    ...within("logs"),
    validateSearch: search<LogsSearch>(),
    component: page(() => import("./pages/logs/logs-page.tsx"), "LogsPage"),
  }),
  createRoute({
    ...within("requests"),
    validateSearch: search<RequestsSearch>(),
    component: page(() => import("./pages/requests/requests-page.tsx"), "RequestsPage"),
  }),
  createRoute({
    ...within("metrics"),
    validateSearch: search<MetricsSearch>(),
    component: page(() => import("./pages/metrics/metrics-page.tsx"), "MetricsPage"),
  }),
  createRoute({
    ...within("processes"),
    component: page(() => import("./pages/processes/processes-page.tsx"), "ProcessesPage"),
  }),
  createRoute({
    ...within("terminal"),
    component: page(() => import("./pages/runs/terminal-page.tsx"), "TerminalPage"),
  }),
  createRoute({ ...within("runs/$number"), component: page(() => import("./pages/runs/run-page.tsx"), "RunPage") }),
  createRoute({
    ...within("variables"),
    validateSearch: search<FilterSearch>(),
    component: page(() => import("./pages/env/env-page.tsx"), "EnvPage"),
  }),
  createRoute({
    ...within("domains"),
    component: page(() => import("./pages/domains/domains-page.tsx"), "DomainsPage"),
  }),
  createRoute({ ...within("cron"), component: page(() => import("./pages/cron/cron-page.tsx"), "CronPage") }),
  createRoute({ ...within("cron/$name"), component: page(() => import("./pages/cron/job-page.tsx"), "JobPage") }),
  createRoute({
    ...within("database"),
    component: page(() => import("./pages/database/database-page.tsx"), "DatabasePage"),
  }),
  createRoute({
    ...within("database/$schema/$table"),
    validateSearch: search<TableSearch>(),
    component: page(() => import("./pages/data/table-page.tsx"), "TablePage"),
  }),
  createRoute({
    ...within("backups"),
    component: page(() => import("./pages/backups/backups-page.tsx"), "BackupsPage"),
  }),
  createRoute({
    ...within("backups/$id"),
    component: page(() => import("./pages/backups/backup-page.tsx"), "BackupPage"),
  }),
  createRoute({
    ...within("storage"),
    validateSearch: search<StorageSearch>(),
    component: page(() => import("./pages/disk/storage-page.tsx"), "StoragePage"),
  }),
  createRoute({
    ...within("timeline"),
    validateSearch: search<EntriesSearch>(),
    component: page(() => import("./pages/timeline/timeline-page.tsx"), "TimelinePage"),
  }),
  createRoute({
    ...within("settings"),
    component: page(() => import("./pages/projects/settings-page.tsx"), "SettingsPage"),
  }),
] as const;

const routes = [
  createRoute({ ...at("/"), validateSearch: search<FilterSearch>(), component: OverviewPage }),
  project.addChildren(projectRoutes),
  createRoute({
    ...at("/approvals"),
    validateSearch: search<ApprovalsSearch>(),
    component: page(() => import("./pages/approvals/approvals-page.tsx"), "ApprovalsPage"),
  }),
  createRoute({
    ...at("/activity"),
    validateSearch: search<EntriesSearch>(),
    component: page(() => import("./pages/activity/activity-page.tsx"), "ActivityPage"),
  }),
  createRoute({ ...at("/access"), component: page(() => import("./pages/tokens/access-page.tsx"), "AccessPage") }),
  createRoute({ ...at("/account"), component: page(() => import("./pages/me/account-page.tsx"), "AccountPage") }),
  createRoute({
    ...at("/api"),
    validateSearch: search<FilterSearch>(),
    component: page(() => import("./pages/self-description/api-page.tsx"), "ApiPage"),
  }),
  createRoute({
    ...at("/operator"),
    component: page(() => import("./pages/platform/platform-page.tsx"), "PlatformPage"),
  }),
  createRoute({
    ...at("/operator/organizations"),
    component: page(() => import("./pages/orgs/orgs-page.tsx"), "OrgsPage"),
  }),
  createRoute({
    ...at("/operator/status"),
    validateSearch: search<AlertsSearch>(),
    component: page(() => import("./pages/status/status-page.tsx"), "StatusPage"),
  }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
