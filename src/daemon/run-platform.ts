import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { flushCompileCache } from "node:module";
import { dirname } from "node:path";

import { firstPush } from "../contract/first-push.ts";
import { createSignInLink } from "../features/tokens/tokens.ts";
import type { GitServers } from "../git/git-servers.ts";
import { signInUrl } from "../http/sign-in.ts";
import { hasHttps } from "./certificate-settings.ts";
import { pathsIn, type Config } from "./config.ts";
import { programPath } from "./releases/installation.ts";
import { deployExample } from "./first-start.ts";
import { roles, type Role } from "./roles.ts";
import { EndedAtStart, createEndRequests, createShutdown, type Shutdown } from "./shutdown.ts";
import { exampleSource, startPlatform, type RunningPlatform } from "./start.ts";
import { addressesOf } from "./wire.ts";

type Say = (line: string) => void;

/** Starts the platform, prints the banner, and resolves when it has ended on request. */
export async function runPlatform(config: Config, say: Say): Promise<void> {
  const shutdown = createShutdown((line) => process.stderr.write(`${line}\n`));
  const asked = endOnSignals(shutdown, say);
  try {
    const running = await shutdown.during(() => startPlatform(config, shutdown, say));
    if (!(await before(asked, running.reconcilers.start()))) return;
    say(await banner(running));
    if (config.example && running.git !== null) await showExample(running, say);
    flushCompileCache();
    await asked;
  } catch (fault) {
    if (!(fault instanceof EndedAtStart)) throw fault;
  } finally {
    await shutdown.run();
  }
}

/** Returns false if `end` comes first. */
const before = (end: Promise<void>, work: Promise<void>) =>
  Promise.race([work.then(() => true), end.then(() => false)]);

async function showExample(running: RunningPlatform, say: Say): Promise<void> {
  const { config, platform, parts } = running;
  const outcome = await deployExample({
    db: platform.db,
    log: platform.log,
    gitBin: parts.git ?? "git",
    baseUrl: `http://${config.listen}:${config.httpPort}`,
    tokenFile: pathsIn(config.dataDir).adminToken,
    source: exampleSource,
    onLine: (line) => say(`  example | ${line}`),
  });
  if (outcome === "deployed") say(`\nThe example is live: ${platform.appUrl(`example.${config.domain}`)}\n`);
}

/** Resolves when the process receives a signal to end. A second request after that exits at once. */
function endOnSignals(shutdown: Shutdown, say: Say): Promise<void> {
  const requests = createEndRequests();
  return new Promise((resolve) => {
    const end = (signal: NodeJS.Signals) => {
      const request = requests.add();
      if (request === "second") process.exit(130);
      if (request === "repeated") return;
      say(`\nStopping (${signal}). Press Ctrl-C again after two seconds to exit at once.`);
      resolve();
      void shutdown.run().then(() => process.exit(0));
    };
    process.on("SIGINT", end);
    process.on("SIGTERM", end);
    process.on("SIGHUP", end);
  });
}

/** Returns the text to print once everything runs: addresses, paths, and the parts that this machine lacks. */
async function banner(running: RunningPlatform): Promise<string> {
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
  const { adminToken, recoveryKey } = pathsIn(config.dataDir);
  const { isolation, missing, network } = await platform.ports.runtime.describe();
  return [
    `  git over HTTP    http://${config.host}:${config.httpPort}/git/<organization>/<project>.git`,
    `  git over SSH     ssh://git@${config.host}:${git.port}/<organization>/<project>.git`,
    `  SSH host key     ${git.fingerprint}`,
    `  administrator    ${adminToken} (a token; keep it)`,
    ...(existsSync(recoveryKey)
      ? [`  recovery key     ${recoveryKey} (opens backups of the platform; keep it elsewhere)`]
      : []),
    `  isolation        ${isolation.join(", ") || "none"}; network: ${network}`,
    ...missing.map(({ part, effect, remedy }) => `  ! missing        ${part}: ${effect} ${remedy}`),
  ];
}

function ports(config: Config): string {
  return hasHttps(config) ? `${config.edgePort} and ${config.edgeTlsPort} (HTTPS)` : `${config.edgePort}`;
}

/** Returns a one-time sign-in link if the first token's file still exists, else the dashboard's address. */
async function dashboardAddress({ config, platform }: RunningPlatform): Promise<string> {
  const token = await readFile(pathsIn(config.dataDir).adminToken, "utf8").catch(() => "");
  if (token === "") return `http://${config.host}:${config.httpPort}`;
  const { controlUrl } = addressesOf(config, platform.httpsNames);
  const url = signInUrl(controlUrl, await createSignInLink(platform.db, token.trim()));
  return `${url}\n                   (signs in once, within 15 minutes; a new link: berth open --dashboard)`;
}

/** Returns commands that work as printed in another terminal, whatever its PATH, the ports and the data folder are. */
export function nextSteps(config: Pick<Config, "listen" | "httpPort" | "dataDir">): readonly string[] {
  const bin = dirname(programPath("berth"));
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
