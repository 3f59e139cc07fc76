import { pathsIn } from "./config.ts";
import type { RunningPlatform } from "./start.ts";

/** What a person needs to know once everything runs: where things are, and what this machine lacks. */
export async function banner(running: RunningPlatform): Promise<string> {
  const { config, platform, parts } = running;
  const { isolation, missing, network } = await platform.ports.runtime.describe();
  const lines = [
    "",
    "Berth is running.",
    `  API              http://${config.host}:${config.httpPort}/v1`,
    `  applications     ${platform.appUrl(`<project>.${config.domain}`)}`,
    `  git over SSH     ssh://git@${config.host}:${running.git.port}/<organization>/<project>.git`,
    `  git over HTTP    http://${config.host}:${config.httpPort}/git/<organization>/<project>.git`,
    `  administrator    ${pathsIn(config.dataDir).adminToken} (a token; keep it)`,
    `  data             ${config.dataDir}`,
    `  isolation        ${isolation.join(", ") || "none"}; network: ${network}`,
  ];
  for (const part of missing) lines.push(`  ! missing        ${part.part}: ${part.effect} ${part.remedy}`);
  for (const part of parts.missing)
    lines.push(`  ! missing        ${part.part}: ${part.effect} ${part.command === "" ? "" : `Run: ${part.command}`}`);
  lines.push("", "Next: bin/berth login && bin/berth create my-app && git push berth main", "Stop with Ctrl-C.", "");
  return lines.join("\n");
}
