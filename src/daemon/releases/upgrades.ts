import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PoolConfig } from "pg";
import { gt } from "semver";
import { startDetached } from "../../kit/exec.ts";
import type { Log } from "../../kit/log.ts";
import { ownFolder, readVersion } from "../../kit/own-version.ts";
import type { Releases, WantedUpgrade } from "../../ports/releases.ts";
import { migrate, pendingMigrations } from "../../store/migrate.ts";
import type { Config } from "../config.ts";
import { ownSupervisor, startEnvironment } from "./control-plane.ts";
import { newestUnlessOld } from "./fetch-release.ts";
import { currentVersion, installationOf, installedVersions, processesOf, type Installation } from "./installation.ts";
import { beginSteps, isUnderWay, readSteps } from "./steps.ts";
import { upgradeFiles } from "./upgrade-files.ts";

const dayMs = 24 * 60 * 60_000;
const continueEveryMs = 5000;

/** Continues an upgrade whose process has ended before its end, if there is one; otherwise does nothing. */
export async function continueUpgrade(config: Config): Promise<void> {
  const { steps, runner, lock, log, folder } = upgradeFiles(config.dataDir);
  if (!isUnderWay(readSteps(steps))) return;
  const args = ["--nonblock", "--close", lock, "/bin/sh", join(import.meta.dirname, "keep-upgrade.sh"), runner];
  // While its process runs, flock ends at once.
  await startDetached({ file: "/usr/bin/flock", args }, log, { cwd: folder, env: startEnvironment(config) });
}

/** Serves the installed releases. While it is open, an upgrade whose process ends is continued, and newer releases are looked for. */
export function openReleases(
  config: Config,
  { connection, log }: { readonly connection: PoolConfig; readonly log: Log },
): { readonly releases: Releases; close(): void } {
  const installation = installationOf();
  const { steps, seen } = upgradeFiles(config.dataDir);
  const isBusy = () => isUnderWay(readSteps(steps));
  let newest: string | null = null;
  const look = async () => {
    if (config.releaseUrl !== null && installation !== null)
      newest = (await newestUnlessOld(config.releaseUrl, { seen }))?.version ?? null;
  };
  const warn = (error: unknown) => log.warn({ err: error }, "could not look for releases or continue an upgrade");
  void look().catch(warn);
  const timers = [
    setInterval(() => void look().catch(warn), dayMs),
    setInterval(() => void continueUpgrade(config).catch(warn), continueEveryMs),
  ];
  const releases: Releases = {
    newer: () => (newest !== null && gt(newest, readVersion().version) ? newest : null),
    async report() {
      const lines = readSteps(steps);
      const upgrade = {
        from: lines[0]?.from ?? "",
        to: lines.find(({ to }) => to !== undefined)?.to ?? null,
        steps: lines,
      };
      return {
        installed: installation === null ? [] : describeInstalled(installation),
        unfinalized: await pendingMigrations({ connection, finalize: true }),
        upgrade: lines.length === 0 ? null : upgrade,
      };
    },
    async upgrade(wanted) {
      if (installation === null) return "clone";
      if (isBusy()) return "under_way";
      await beginUpgrade(config, wanted);
      return null;
    },
    finalize: async () => (isBusy() ? "under_way" : migrate({ connection, finalize: true })),
  };
  return { releases, close: () => timers.forEach(clearInterval) };
}

function describeInstalled(installation: Installation) {
  const [current, processes] = [currentVersion(installation), processesOf(installation)];
  return installedVersions(installation).map((name) => ({
    ...readVersion(join(installation.versions, name)),
    current: name === current,
    processes: processes.get(name) ?? 0,
  }));
}

async function beginUpgrade(config: Config, wanted: WantedUpgrade): Promise<void> {
  const { steps, runner, folder } = upgradeFiles(config.dataDir);
  // Before the steps: an upgrade that is under way always has its program. The process of the one before may still be ending.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(runner, join(ownFolder, "bin/berthd"), { mode: 0o600, flush: true });
  beginSteps(steps, { ...wanted, from: readVersion().version, service: ownSupervisor() });
  await continueUpgrade(config);
}
