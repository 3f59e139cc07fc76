import { createRootRoute, createRoute, createRouter, lazyRouteComponent, type AnyRoute } from "@tanstack/react-router";
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
/** Unchecked: pages write the address's query, and it is seldom typed by hand. */
const cast = <T,>(query: Record<string, unknown>): T => query as T;
const page = <T extends object>(load: Load<T>, name: Name<T>) => lazyRouteComponent(() => loadPart(load), name);

type Load<T> = () => Promise<T>;
type Name<T> = keyof T & string;

/** Makes the routes of pages below another route. The query of `searched` ones has a type. */
const under = <R extends AnyRoute>(getParentRoute: () => R) => ({
  plain: <const P extends string, T extends object>(path: P, name: Name<T>, load: Load<T>) =>
    createRoute({ getParentRoute, path, component: page(load, name) }),
  searched:
    <S,>() =>
    <const P extends string, T extends object>(path: P, name: Name<T>, load: Load<T>) =>
      createRoute({ getParentRoute, path, component: page(load, name), validateSearch: cast<S> }),
});

const project = createRoute({
  getParentRoute: () => root,
  path: "/projects/$slug",
  component: page(() => import("./frame/project-frame.tsx"), "ProjectFrame"),
});
const inProject = under(() => project);
const inRoot = under(() => root);

const projectRoutes = [
  inProject.plain("/", "ProjectPage", () => import("./pages/projects/project-page.tsx")),
  inProject.plain("deployments", "DeploymentsPage", () => import("./pages/deployments/deployments-page.tsx")),
  inProject.plain("previews", "PreviewsPage", () => import("./pages/previews/previews-page.tsx")),
  inProject.searched<CompareSearch>()("compare", "ComparePage", () => import("./pages/deployments/compare-page.tsx")),
  inProject.searched<SourceSearch>()("files", "SourcePage", () => import("./pages/builds/source-page.tsx")),
  inProject.plain("builds/$id", "BuildPage", () => import("./pages/builds/build-page.tsx")),
  inProject.searched<LogsSearch>()("logs", "LogsPage", () => import("./pages/logs/logs-page.tsx")),
  inProject.searched<RequestsSearch>()("requests", "RequestsPage", () => import("./pages/requests/requests-page.tsx")),
  inProject.searched<MetricsSearch>()("metrics", "MetricsPage", () => import("./pages/metrics/metrics-page.tsx")),
  inProject.plain("processes", "ProcessesPage", () => import("./pages/processes/processes-page.tsx")),
  inProject.plain("terminal", "TerminalPage", () => import("./pages/runs/terminal-page.tsx")),
  inProject.plain("runs/$number", "RunPage", () => import("./pages/runs/run-page.tsx")),
  inProject.searched<FilterSearch>()("variables", "EnvPage", () => import("./pages/env/env-page.tsx")),
  inProject.plain("domains", "DomainsPage", () => import("./pages/domains/domains-page.tsx")),
  inProject.plain("cron", "CronPage", () => import("./pages/cron/cron-page.tsx")),
  inProject.plain("cron/$name", "JobPage", () => import("./pages/cron/job-page.tsx")),
  inProject.plain("database", "DatabasePage", () => import("./pages/database/database-page.tsx")),
  inProject.searched<TableSearch>()(
    "database/$schema/$table",
    "TablePage",
    () => import("./pages/data/table-page.tsx"),
  ),
  inProject.plain("backups", "BackupsPage", () => import("./pages/backups/backups-page.tsx")),
  inProject.plain("backups/$id", "BackupPage", () => import("./pages/backups/backup-page.tsx")),
  inProject.searched<StorageSearch>()("storage", "StoragePage", () => import("./pages/disk/storage-page.tsx")),
  inProject.searched<EntriesSearch>()("timeline", "TimelinePage", () => import("./pages/timeline/timeline-page.tsx")),
  inProject.plain("settings", "SettingsPage", () => import("./pages/projects/settings-page.tsx")),
] as const;

const routes = [
  createRoute({
    getParentRoute: () => root,
    path: "/",
    validateSearch: cast<FilterSearch>,
    component: OverviewPage,
  }),
  project.addChildren(projectRoutes),
  inRoot.searched<ApprovalsSearch>()(
    "/approvals",
    "ApprovalsPage",
    () => import("./pages/approvals/approvals-page.tsx"),
  ),
  inRoot.searched<EntriesSearch>()("/activity", "ActivityPage", () => import("./pages/activity/activity-page.tsx")),
  inRoot.plain("/access", "AccessPage", () => import("./pages/tokens/access-page.tsx")),
  inRoot.plain("/account", "AccountPage", () => import("./pages/me/account-page.tsx")),
  inRoot.searched<FilterSearch>()("/api", "ApiPage", () => import("./pages/self-description/api-page.tsx")),
  inRoot.plain("/operator", "PlatformPage", () => import("./pages/platform/platform-page.tsx")),
  inRoot.plain("/operator/organizations", "OrgsPage", () => import("./pages/orgs/orgs-page.tsx")),
  inRoot.searched<AlertsSearch>()("/operator/status", "StatusPage", () => import("./pages/status/status-page.tsx")),
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
