import { routes, type RouteName } from "../contract/routes.ts";
import type { Row } from "../contract/table.ts";

/** Returns whether only the primary control plane can serve a request. All other requests are served from the database. */
export function needsPrimary(method: string, url: string): boolean {
  const path = url.split("?", 1)[0] ?? "";
  if (path.startsWith("/git/")) return true;
  return patterns.some((row) => isMethod(row.method, method) && row.pattern.test(path));
}

/** Nouns whose rows use data on the primary's disk or processes on its machine. */
const nouns: ReadonlySet<string> = new Set(["builds", "data", "database", "disk", "follow", "logs", "runs"]);
/** Rows of other nouns that do the same. */
const names: ReadonlySet<string> = new Set<RouteName>([
  "deployments.compare",
  "deployments.create",
  "diagnosis.get",
  "platform.dismiss",
  "platform.drain",
  "platform.join",
  "platform.machines",
  "platform.move",
  // Shows the human who approves it what the project's database holds.
  "projects.delete",
]);

const patterns = (routes as readonly Row[]).filter(isOfPrimary).map((row) => ({
  method: row.method,
  pattern: new RegExp(`^${row.path.replace(/:\w+/g, "[^/]+")}$`),
}));

function isMethod(own: string, asked: string): boolean {
  return own === asked || (own === "GET" && asked === "HEAD");
}

function isOfPrimary({ name }: Row): boolean {
  return names.has(name) || nouns.has(name.split(".")[0] ?? "");
}
