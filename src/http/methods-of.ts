import { routes } from "../contract/routes.ts";

const patterns = [...Map.groupBy(routes, (row) => row.path)].map(([path, rows]) => ({
  pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+")}$`),
  methods: rows.map((row) => row.method),
}));

/** Returns the methods allowed on a URL's path, for `Allow`; empty when there is no such path. */
export function methodsOf(url: string): readonly string[] {
  const [path = ""] = url.split("?");
  const found: string[] = patterns.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods);
  if (found.length === 0) return [];
  return [...found, ...(found.includes("GET") ? ["HEAD"] : []), "OPTIONS"];
}
