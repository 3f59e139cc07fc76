import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packageJson from "../../package.json" with { type: "json" };
import { ensureRecoveryKey } from "../adapters/platform-archive-age/recovery-key.ts";
import type { HandlerPlatform } from "../features/context.ts";
import { findPrimary } from "../features/control-planes/control-planes.ts";
import { expositionType } from "../features/metrics/metrics.ts";
import { knownRecipient } from "../features/platform/platform.ts";
import { raiseRouteVersion } from "../features/routes/routes.ts";
import { createGitServers, type GitServers } from "../git/git-servers.ts";
import { answerChallenge, challengePrefix } from "../http/acme-challenges.ts";
import { createForward } from "../http/forward.ts";
import type { OperatorText } from "../http/operator-texts.ts";
import { createHttpServer, type HttpOptions } from "../http/server.ts";
import type { Driver } from "../reconcile/driver.ts";
import type { Platform } from "../reconcile/platform.ts";
import type { Confinement } from "../sandbox/confine.ts";
import { openDatabase } from "../store/database.ts";
import { migrate } from "../store/migrate.ts";
import { openWakeups } from "../store/wakeups.ts";
import { StartRefused, httpLimitsOf, pathsIn, pushLimitsOf, type Config } from "./config.ts";
import { recoveryKeyFiles } from "./recovery/kept-files.ts";
import { rehearsePending } from "./releases/control-copy.ts";
import { openReleases } from "./releases/upgrades.ts";
import { holdDataFolder } from "./data-folder.ts";
import { edgeListens, requireFreePorts } from "./edge.ts";
import { ensureFirstOrganization } from "./first-start.ts";
import { admitCode, createGitGate, requireAdmittedCode, type CodeAdmission } from "./git-gate.ts";
import { createLog } from "./log.ts";
import {
  becomePrimary,
  openOwnDatabase,
  requireMatchingData,
  requireOwnDatabase,
  requireSharedDatabase,
  restoreMachineName,
} from "./own-database.ts";
import { prepareDashboard } from "./prepare-dashboard.ts";
import { prometheusText } from "./prometheus.ts";
import { createReconcilers, readinessChecks } from "./reconcilers.ts";
import { ensureMachine, type MachineParts } from "./setup/machine.ts";
import { endEdge, endTenants, type Shutdown } from "./shutdown.ts";
import { mountVolume } from "./volume/database-volume.ts";
import { addressesOf, dataDiskOf, wire } from "./wire.ts";

export interface RunningPlatform {
  readonly config: Config;
  readonly parts: MachineParts;
  readonly platform: Platform;
  /** Null unless this process is the primary. */
  readonly git: GitServers | null;
  readonly reconcilers: Driver;
}

/** Starts everything in order but the reconcilers. If a step fails, `shutdown` stops what was started before it. */
export async function startPlatform(
  config: Config,
  shutdown: Shutdown,
  say: (line: string) => void,
): Promise<RunningPlatform> {
  const log = createLog({ format: config.logFormat, level: config.logLevel });
  const isPrimary = config.roles.includes("git");
  requireSharedDatabase(config);
  await makeRoom(config);
  const folder = holdDataFolder(config.dataDir);
  shutdown.onEnd("the data folder", async () => folder.release());
  await mountVolume(config.dataDir);
  await requireFreePorts(config, edgeListens(config));
  const bundle = prepareDashboard({ fallbackDir: pathsIn(config.dataDir).dashboard, log });
  const parts = await partsOf(config, log);
  say("Starting the control plane's database");
  requireOwnDatabase(config);
  const { database, requests, wakeups, releases } = await openStore(config, parts, shutdown, log);
  await requireMatchingData(config, database.db);
  await restoreMachineName(config, database.db);
  if (isPrimary) say("Testing which isolation this machine supports");
  const { platform, primary } = await wire({ config, parts, database, wakeups, log });
  if (config.onStop === "stop") endWith(shutdown, { platform, primary });
  const admits = admitCode((await platform.ports.runtime.describe()).isolation, config.allowUnisolated);
  if (isPrimary) await requireAdmittedCode(platform.db, admits);
  await raiseRouteVersion(platform.db);
  if (isPrimary) await ensureFirstOrganization(platform.db, pathsIn(config.dataDir).adminToken);
  const git = primary && (await openGit(config, { parts, platform, confinement: primary.confinement, admits }));
  if (git !== null) await ensureRecoveryKey(recoveryKeyFiles(config), await knownRecipient(platform.db));
  const name = platform.settings.monitors.machine;
  if (git !== null)
    await becomePrimary(config, platform, { machine: platform.machine, name, ssh_host_key: git.fingerprint });
  const self = () => ({ name, owner: platform.owner, roles: config.roles, url: privateUrl(config, port) });
  const reconcilers = createReconcilers(platform, {
    roles: config.roles,
    git: () => (git !== null && git.port > 0 ? { host: config.listen, port: git.port } : (git?.problem ?? null)),
    self,
  });
  const sshHostKey = git?.fingerprint ?? (await findPrimary(platform.db))?.ssh_host_key ?? "";
  const api = createHttpServer({
    platform: handlerPlatform(config, { ...platform, db: requests.db }, { admitsCode: admits, sshHostKey, releases }),
    log,
    checks: readinessChecks(platform, reconcilers, { roles: config.roles, git }),
    roles: config.roles,
    hostnames: [hostname(), ...config.hosts],
    mounts: [...(git === null ? [] : [{ prefix: "/git/" as const, handle: git.httpHandler }]), challengesOf(platform)],
    forward: isPrimary ? null : createForward({ db: requests.db, servesApi: config.roles.includes("api"), log }),
    dashboard: { bundle },
    edgeHeaders: async () => (await platform.ports.edge.entrance())?.headers ?? null,
    operatorTexts: [metricsText(platform, reconcilers)],
    limits: { ...httpLimitsOf(config), outcomeDeadlineMs: outcomeDeadlineMs(config) },
  });
  shutdown.onEnd("the API", () => api.close());
  if (git !== null) shutdown.onEnd("git", () => git.close(config.onStop === "keep" ? 0 : 1000));
  await git?.listen();
  const { port } = await api.listen({ host: config.listen, port: config.httpPort });
  shutdown.onEnd("the reconcilers", () => reconcilers.stop());
  return { config, parts, platform, git, reconcilers };
}

function partsOf(config: Config, log: ReturnType<typeof createLog>): Promise<MachineParts> {
  const [hasTenants, hasEdge] = [config.roles.includes("git"), config.roles.includes("edge")];
  return ensureMachine({
    dataDir: config.dataDir,
    log,
    install: config.install && (hasTenants || hasEdge),
    environment: config.toolEnvironment,
    postgres: config.databaseUrl === null,
    edge: hasEdge && !hasTenants ? "only" : hasEdge,
    haproxy: config.haproxy,
  });
}

function endWith(shutdown: Shutdown, { platform, primary }: Awaited<ReturnType<typeof wire>>): void {
  if (primary === null) return shutdown.onEnd("the edge", () => endEdge(platform));
  shutdown.onEnd("networks and mounts of this machine", primary.leaveMachine);
  shutdown.onEnd("applications, edge and databases", () => endTenants(platform));
}

/** Returns the URL at which other processes reach this one's control port. */
function privateUrl({ privateUrl: given, listen }: Config, port: number): string {
  if (given !== null) return given.replace(/\/$/, "");
  const host = listen === "0.0.0.0" || listen === "::" ? hostname() : listen;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Returns a mount that answers a certificate authority's challenges under every hostname. */
function challengesOf({ db }: Platform): NonNullable<HttpOptions["mounts"]>[number] {
  const prefix = challengePrefix;
  return { prefix, anyHost: true, handle: (request, response) => answerChallenge(db, request, response) };
}

/** Frees the disk reserve if the disk is full: otherwise not even the lock of the data folder could be written. */
async function makeRoom(config: Config): Promise<void> {
  if (existsSync(config.dataDir))
    await dataDiskOf(config)
      .keepReserve()
      .catch(() => "missing");
}

/** Returns how long a request waits for an outcome: a rollback needs the whole health budget, its turn in the queue and a margin. */
function outcomeDeadlineMs({ healthBudgetSeconds }: Config): number {
  return Math.max(240, healthBudgetSeconds + 90) * 1000;
}

function metricsText(platform: Platform, reconcilers: Driver): OperatorText {
  const read = () => prometheusText(platform, reconcilers, packageJson.version);
  return { path: "/metrics", scope: "metrics:read", contentType: expositionType, read };
}

async function openStore(config: Config, parts: MachineParts, shutdown: Shutdown, log: ReturnType<typeof createLog>) {
  const own = await openOwnDatabase(config, parts, log);
  own.guard();
  if (config.onStop === "stop") shutdown.onEnd("the control plane's database", () => own.stop());
  const { connection } = own;
  const migrated = async () => {
    await rehearsePending(config, { connection, programs: parts, log });
    return migrate({ connection });
  };
  const applied = await migrated().catch((error: unknown) => {
    throw new StartRefused(`The control plane's database cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  });
  if (applied.length > 0) log.info({ migrations: applied.length, newest: applied.at(-1) }, "migrated the database");
  const database = openDatabase({ connection, log });
  // Requests have their own connections, so that they don't queue behind pushes and reconcilers, nor these behind many clients.
  const requests = openDatabase({ connection, log });
  shutdown.onEnd("database connections", async () => void (await Promise.all([database.close(), requests.close()])));
  const wakeups = await openWakeups({ connection, log });
  shutdown.onEnd("wake-ups", () => wakeups.close());
  const { releases, close } = openReleases(config, { connection, log });
  shutdown.onEnd("looking for releases", async () => close());
  return { database, requests, wakeups, releases };
}

interface GitParts {
  readonly parts: MachineParts;
  readonly platform: Platform;
  readonly confinement: Confinement;
  readonly admits: CodeAdmission;
}

async function openGit(config: Config, { parts, platform, confinement, admits }: GitParts): Promise<GitServers> {
  const paths = pathsIn(config.dataDir);
  const limits = pushLimitsOf(config);
  const gate = createGitGate({
    db: platform.db,
    wakeups: platform.wakeups,
    repositories: platform.ports.repositories,
    builder: platform.ports.builder,
    logStore: platform.ports.logStore,
    dataDisk: platform.ports.dataDisk,
    owner: platform.owner,
    admits,
    treeLimits: { entries: limits.tree_entries, bytes: limits.tree_bytes },
    diskLimits: platform.settings.disk,
    vault: platform.vault,
    clock: platform.clock,
    ports: platform.ports,
    settings: platform.settings,
    appsDomain: config.domain,
    appUrl: platform.appUrl,
    previews: platform.settings.previews,
  });
  return createGitServers({
    gate,
    repositories: platform.ports.repositories,
    dir: paths.git,
    hostKeyFile: paths.hostKey,
    knownHostKey: (await findPrimary(platform.db))?.ssh_host_key ?? null,
    ssh: { host: config.listen, port: config.sshPort },
    log: platform.log,
    gitBin: parts.git ?? "git",
    confinement,
    limits: { packBytes: limits.pack_bytes },
  });
}

function handlerPlatform(
  config: Config,
  platform: Platform,
  more: Pick<HandlerPlatform, "admitsCode" | "sshHostKey" | "releases">,
) {
  return {
    ...platform,
    ...more,
    addresses: addressesOf(config, platform.httpsNames),
    version: packageJson.version,
    limits: pushLimitsOf(config),
  };
}

export const exampleSource = join(fileURLToPath(new URL("../../", import.meta.url)), "examples", "node");
