import type { SourceTree } from "../detection/source-tree.ts";

/** Returns warnings about things that work but are rarely intended. */
export function sourceWarnings(tree: SourceTree): string[] {
  const hasModules = tree.paths.some((path) => path.startsWith("node_modules/"));
  return [
    ...(tree.has(".env")
      ? [
          ".env is in the repository, so everybody who can read the repository can read its values. `berth env set --from-file .env` seals them.",
        ]
      : []),
    ...(hasModules
      ? ["node_modules is in the repository. `git rm -r --cached node_modules` and .gitignore keep it out."]
      : []),
    ...composeWarnings(tree),
  ];
}

/** A file of Docker Compose describes several containers; Berth deploys one application of the source. */
function composeWarnings(tree: SourceTree): string[] {
  const path = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"].find(tree.has);
  if (path === undefined) return [];
  const services = servicesIn(tree.text(path) ?? "");
  const named = services.length === 0 ? "" : ` Its services: ${services.join(", ")}.`;
  return [
    `${path} is not used: Berth deploys one application and reads none of its services, ports, variables and volumes.${named}`,
    'Instead: `berth db create` for PostgreSQL, `berth env set` for variables, "storage" in berth.json for a volume, a Procfile line for each further process of this source, a project of its own for any other service.',
  ];
}

/** Lists the services of a compose file, with their images: its direct entries below `services`. Reads no other YAML. */
function servicesIn(text: string): readonly string[] {
  const lines = text.split(/\r?\n/);
  const begin = lines.findIndex((line) => /^services:\s*(?:#|$)/.test(line)) + 1;
  const length = lines.slice(begin).findIndex((line) => /^[^\s#]/.test(line));
  const section = begin === 0 ? [] : lines.slice(begin, length < 0 ? undefined : begin + length);
  const indent = /^ +/.exec(section.find((line) => /^ +[^\s#]/.test(line)) ?? "")?.[0] ?? " ";
  const services: string[] = [];
  for (const line of section) {
    const [, name] = line.startsWith(indent) ? (/^["']?([\w.-]+)["']?:/.exec(line.slice(indent.length)) ?? []) : [];
    const [, image] = /^\s+image:\s*["']?([\w./:@-]{1,100})/.exec(line) ?? [];
    if (name !== undefined) services.push(name);
    else if (image !== undefined) services.push(`${services.pop() ?? ""} (${image})`);
  }
  return services.slice(0, 20);
}
