/** The page of the docs about each page of the dashboard, with its section. A page below another has its own only if it needs one. */
const about: Readonly<Record<string, string>> = {
  "/": "dashboard",
  "/approvals": "approvals#how-a-request-is-approved",
  "/activity": "observability#timeline-and-activity",
  "/access": "organizations#who-may-do-what",
  "/account": "people#passkeys",
  "/api": "agents",
  "/operator": "operations",
  "/operator/organizations": "organizations#suspension",
  "/operator/status": "monitoring#checks",
  "/projects/$slug": "applications",
  "/projects/$slug/deployments": "dashboard#deployments",
  "/projects/$slug/previews": "previews",
  "/projects/$slug/compare": "dashboard#what-changed",
  "/projects/$slug/files": "dashboard#deploying-a-folder",
  "/projects/$slug/builds/$id": "applications#when-a-push-is-refused",
  "/projects/$slug/logs": "observability#logs",
  "/projects/$slug/requests": "observability#requests",
  "/projects/$slug/metrics": "observability#metrics",
  "/projects/$slug/terminal": "dashboard#terminal",
  "/projects/$slug/processes": "applications#process-types",
  "/projects/$slug/runs/$number": "applications#one-off-commands",
  "/projects/$slug/variables": "applications#env-files",
  "/projects/$slug/domains": "domains",
  "/projects/$slug/cron": "cron",
  "/projects/$slug/cron/$name": "cron#the-call",
  "/projects/$slug/database": "database",
  "/projects/$slug/database/$schema/$table": "table-browser",
  "/projects/$slug/backups": "backups",
  "/projects/$slug/backups/$id": "backups#what-a-backup-is",
  "/projects/$slug/storage": "dashboard#storage",
  "/projects/$slug/timeline": "observability#timeline-and-activity",
  "/projects/$slug/settings": "dashboard#settings",
};

/** Returns the address of the docs about a page, by the page's route. */
export function docsAbout(route: string): string {
  const section = about[route.replace(/(?<=.)\/$/, "")];
  return section === undefined ? "/docs" : `/docs/${section}`;
}
