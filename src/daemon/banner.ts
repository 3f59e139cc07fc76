import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { firstPush } from "../contract/first-push.ts";
import type { GitServers } from "../git/git-servers.ts";
import { hasHttps } from "./certificate-settings.ts";
import { pathsIn, type Config } from "./config.ts";
import { roles, type Role } from "./roles.ts";
import type { RunningPlatform } from "./start.ts";

/** Returns the text to print once everything runs: addresses, paths, and the parts that this machine lacks. */
export async function banner(running: RunningPlatform): Promise<string> {
  const { config, platform, parts, git } = running;
  const has = (role: Role) => config.roles.includes(role);
  const api = `http://${config.host}:${config.httpPort}`;
  const lines = [
    "",
    "Berth is running.",
    ...(config.roles.length < roles.length ? [`  roles            ${config.roles.join(", ")}`] : []),
    ...(has("api") ? [`  dashboard        ${await dashboardAddress(running)}`, `  API              ${api}/v1`] : []),
    `  applications     ${platform.appUrl(`<project>.${config.domain}`)}`,
    ...(has("edge") ? [`  edge             HAProxy on ${config.listen}, port ${ports(config)}`] : []),
    ...(git === null ? [] : await linesOfPrimary(running, git)),
    `  data             ${config.dataDir}`,
  ];
  if (git !== null)
    for (const part of parts.missing)
      lines.push(
        `  ! missing        ${part.part}: ${part.effect} ${part.command === "" ? "" : `Run: ${part.command}`}`,
      );
  if (git !== null) lines.push("", "Next, in a second terminal:", ...nextSteps(config).map((step) => `  ${step}`));
  lines.push("Stop with Ctrl-C.", "");
  return lines.join("\n");
}

async function linesOfPrimary({ config, platform }: RunningPlatform, git: GitServers): Promise<readonly string[]> {
  const { isolation, missing, network } = await platform.ports.runtime.describe();
  return [
    `  git over HTTP    http://${config.host}:${config.httpPort}/git/<organization>/<project>.git`,
    `  git over SSH     ssh://git@${config.host}:${git.port}/<organization>/<project>.git`,
    `  SSH host key     ${git.fingerprint}`,
    `  administrator    ${pathsIn(config.dataDir).adminToken} (a token; keep it)`,
    `  isolation        ${isolation.join(", ") || "none"}; network: ${network}`,
    ...missing.map(({ part, effect, remedy }) => `  ! missing        ${part}: ${effect} ${remedy}`),
  ];
}

function ports(config: Config): string {
  return hasHttps(config) ? `${config.edgePort} and ${config.edgeTlsPort} (HTTPS)` : `${config.edgePort}`;
}

/** Returns a one-time sign-in link if the first token's file still exists, else the dashboard's address. */
async function dashboardAddress({ config, links }: RunningPlatform): Promise<string> {
  const token = await readFile(pathsIn(config.dataDir).adminToken, "utf8").catch(() => "");
  if (token === "") return `http://${config.host}:${config.httpPort}`;
  return `${links.create(token.trim())}\n                   (signs in once, within 15 minutes; a new link: berth open --dashboard)`;
}

/** Returns commands that work as printed in another terminal, whatever its PATH, the ports and the data folder are. */
export function nextSteps(config: Pick<Config, "listen" | "httpPort" | "dataDir">): readonly string[] {
  const bin = join(fileURLToPath(new URL("../../", import.meta.url)), "bin");
  const isEverywhere = config.listen === "0.0.0.0" || config.listen === "::";
  const host = isEverywhere ? "127.0.0.1" : config.listen.includes(":") ? `[${config.listen}]` : config.listen;
  return [
    `export PATH=${quoted(bin)}:"$PATH"`,
    `berth login http://${host}:${config.httpPort} --token-file ${quoted(pathsIn(config.dataDir).adminToken)}`,
    "cd your-application    # a git repository with a commit",
    `berth create my-app && ${firstPush}`,
  ];
}

const quoted = (path: string): string => (/^[\w./+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`);
