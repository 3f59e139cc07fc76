import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { changedRoutes } from "../../features/routes/routes.ts";
import { runOk } from "../../kit/exec.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { readVersion, versionText } from "../../kit/own-version.ts";
import { openDatabase } from "../../store/database.ts";
import type { Config } from "../config.ts";
import { createLog } from "../log.ts";
import { openOwnDatabase } from "../own-database.ts";
import { ensureMachine } from "../setup/machine.ts";
import { backUpPlatform } from "./back-up.ts";
import { askApplication, readReadiness, restartControlPlane, startEnvironment } from "./control-plane.ts";
import { copyControlDatabase, rehearsalTimeoutMs } from "./control-copy.ts";
import { fetchRelease } from "./fetch-release.ts";
import { installationOf, removeUnused, setCurrent, type Installation } from "./installation.ts";
import { appendStep, isUnderWay, readSteps, upgradeSteps, type Step } from "./steps.ts";
import { upgradeFiles } from "./upgrade-files.ts";

type StepName = (typeof upgradeSteps)[number];

/** How long a version may take until `/readyz` is 200 after its start. */
const readyTimeoutMs = 120_000;
const probeEveryMs = 1000;
const concurrentProbes = 20;
/** Consecutive seconds in which a version that was ready may not be. */
const unreadySeconds = 10;

/** An upgrade that runs: its settings, and what the lines of its file say so far. */
interface Upgrade {
  readonly config: Config;
  readonly installation: Installation;
  readonly file: string;
  readonly request: Step;
}

/**
 * Continues the upgrade whose steps are in the data folder to its end: the new version serves, or the one before does and the last line has
 * the reason. Each step is idempotent, and its line is written after it, so this may be killed at any instant and called again. Runs from
 * the version that is replaced.
 */
export async function runUpgrade(config: Config): Promise<void> {
  const { steps: file } = upgradeFiles(config.dataDir);
  const steps = readSteps(file);
  const installation = installationOf();
  const [request] = steps;
  if (!isUnderWay(steps) || installation === null || request === undefined) return;
  const upgrade = { config, installation, file, request };
  if (steps.at(-1)?.step === "going_back") await goBack(upgrade);
  else await goOn(upgrade, steps);
}

async function goOn(upgrade: Upgrade, steps: readonly Step[]): Promise<void> {
  const written = new Set(steps.map(({ step }) => step));
  for (const step of upgradeSteps.filter((name) => !written.has(name))) {
    const failure = await perform[step](upgrade).then(
      (facts) => void appendStep(upgrade.file, { step, ...facts }),
      (error: unknown) => reasonOf(error),
    );
    if (failure === undefined) continue;
    const isSwitched = readSteps(upgrade.file).some((line) => line.step === "switching");
    appendStep(upgrade.file, { step: isSwitched ? "going_back" : "failed", reason: failure });
    if (isSwitched) await goBack(upgrade);
    return;
  }
}

const perform: Readonly<Record<StepName, (upgrade: Upgrade) => Promise<Partial<Step>>>> = {
  requested: async () => ({}),

  async fetched({ config, installation, request }) {
    const { seen } = upgradeFiles(config.dataDir);
    const to = await fetchRelease(installation, request.source ?? null, { standard: config.releaseUrl, seen });
    if (to === request.from) throw new Error(`Berth ${to} is the version that runs.`);
    return { to };
  },

  /** What may fail without a copy of the database, and which applications answer now. */
  async checked({ config }) {
    if (config.onStop === "stop")
      throw new Error("BERTH_ON_STOP is stop, so a restart would stop applications: set it to keep.");
    const before = await readReadiness(config);
    if (before?.isReady !== true)
      throw new Error(`The platform is not ready: ${before?.detail ?? "it does not answer"}`);
    const hostnames = await withDatabase(config, async ({ db }) => {
      const { projects } = await changedRoutes(db, null);
      return projects.flatMap(({ routes }) => routes.filter(({ targets }) => targets.length > 0).slice(0, 1));
    });
    const silent = await silentAmong(
      config,
      hostnames.map(({ hostname }) => hostname),
    );
    return { answered: hostnames.map(({ hostname }) => hostname).filter((name) => !silent.includes(name)) };
  },

  async backed_up({ config, request }) {
    if (request.without_backup === true) return { backup: null };
    const timeoutMs = config.backupHours * 3_600_000;
    return { backup: await withDatabase(config, ({ db }) => backUpPlatform(db, { timeoutMs })) };
  },

  async copied({ config }) {
    if (config.databaseUrl !== null) return {};
    return {
      copy: await withDatabase(config, ({ connection, programs }) =>
        copyControlDatabase(config, { connection, programs }),
      ),
    };
  },

  /** The new version reads its settings, installs what it needs of Debian's packages, and migrates the copy. */
  async rehearsed(upgrade) {
    const copy = readSteps(upgrade.file).find(({ step }) => step === "copied")?.copy;
    const args = ["rehearse", ...(copy === undefined ? [] : [copy])];
    await runOk(
      { file: join(upgrade.installation.versions, target(upgrade), "bin/berthd"), args },
      { env: startEnvironment(upgrade.config), timeoutMs: rehearsalTimeoutMs },
    );
    return {};
  },

  switching: async () => ({}),

  async switched(upgrade) {
    await start(upgrade, target(upgrade));
    return {};
  },

  async done(upgrade) {
    await watch(upgrade);
    removeUnused(upgrade.installation, [upgrade.request.from ?? ""]);
    return {};
  },
};

function target({ file }: Upgrade): string {
  return readSteps(file).find(({ step }) => step === "fetched")?.to ?? "";
}

/** Makes a version the current one and waits until it is ready. Does nothing to a control plane of that version that is. */
async function start(upgrade: Upgrade, version: string): Promise<void> {
  const { config, installation, request } = upgrade;
  setCurrent(installation, version);
  const wanted = readVersion(join(installation.versions, version));
  const isThere = async () => {
    const seen = await readReadiness(config);
    return seen?.version === wanted.version && seen.commit === wanted.commit ? seen : null;
  };
  const hasEnded = (await isThere())?.isReady
    ? async () => false
    : await restartControlPlane(config, request.service ?? null, join(installation.prefix, "current/bin/berthd"));
  const end = Date.now() + readyTimeoutMs;
  let seen = await isThere();
  while (seen?.isReady !== true) {
    if (await hasEnded()) throw new Error(`Berth ${versionText(wanted)} was not ready: it ended; its log says why.`);
    if (Date.now() > end)
      throw new Error(
        `Berth ${versionText(wanted)} was not ready after ${readyTimeoutMs / 1000} seconds: ${seen?.detail ?? "it does not answer; its log says why"}`,
      );
    await sleep(probeEveryMs);
    seen = await isThere();
  }
}

/** Throws unless the platform stays ready, and every application that answered before answers once. */
async function watch({ config, file }: Upgrade): Promise<void> {
  const answered = readSteps(file).find(({ step }) => step === "checked")?.answered ?? [];
  const end = Date.now() + config.upgradeWatchSeconds * 1000;
  let waiting = answered;
  let unready = 0;
  do {
    const seen = await readReadiness(config);
    unready = seen?.isReady === true ? 0 : unready + 1;
    if (unready > unreadySeconds)
      throw new Error(`The platform did not stay ready: ${seen?.detail ?? "it does not answer"}`);
    waiting = await silentAmong(config, waiting);
    await sleep(probeEveryMs);
  } while (Date.now() < end);
  if (waiting.length > 0)
    throw new Error(`${waiting.length} applications answered before and do not now: ${waiting.slice(0, 5).join(", ")}`);
}

/** Returns the hostnames whose applications do not answer, or with an error of the server. */
async function silentAmong(config: Config, hostnames: readonly string[]): Promise<readonly string[]> {
  const silent: string[] = [];
  await mapWithConcurrency(hostnames, concurrentProbes, async (hostname) => {
    const status = await askApplication(config, hostname);
    if (status === null || status >= 500) silent.push(hostname);
  });
  return silent;
}

async function goBack(upgrade: Upgrade): Promise<void> {
  const reason = readSteps(upgrade.file).findLast(({ step }) => step === "going_back")?.reason ?? "";
  const problem = await start(upgrade, upgrade.request.from ?? "").then(
    () => "",
    (error: unknown) => ` ${reasonOf(error)}`,
  );
  appendStep(upgrade.file, { step: "back", reason: `${reason}${problem}` });
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

async function withDatabase<T>(
  config: Config,
  work: (open: Awaited<ReturnType<typeof openControlDatabase>>) => Promise<T>,
): Promise<T> {
  const open = await openControlDatabase(config);
  return work(open).finally(() => open.close());
}

async function openControlDatabase(config: Config) {
  const log = createLog({ format: config.logFormat, level: "warn" });
  const postgres = config.databaseUrl === null;
  const programs = await ensureMachine({
    dataDir: config.dataDir,
    log,
    install: false,
    environment: config.toolEnvironment,
    postgres,
    edge: false,
  });
  const own = await openOwnDatabase(config, programs, log);
  const { db, close } = openDatabase({ connection: own.connection, log });
  return { db, connection: own.connection, programs, close: async () => void (await close(), await own.detach()) };
}
