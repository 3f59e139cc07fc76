import { existsSync, readdirSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { isIP } from "node:net";
import { totalmem } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { readRunning } from "../../adapters/postgres-host-local/instance-files.ts";
import { createDnsResolver } from "../../adapters/dns-resolver/dns-resolver.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { run, systemPath } from "../../kit/exec.ts";
import { silentLog } from "../../kit/log.ts";
import { isAlive, runsReplacedFiles } from "../../kit/processes.ts";
import { unitNames } from "../../kit/tenant-group.ts";
import { StartRefused, pathsIn, type Config } from "../config.ts";
import { isDataFolderHeld, unstartable } from "../data-folder.ts";
import { edgeListens, requireFreePorts } from "../edge.ts";
import { requireOwnDatabase } from "../own-database.ts";
import { readReadiness } from "../releases/control-plane.ts";
import { ensureMachine } from "../setup/machine.ts";
import { dataDiskOf, domainSettingsOf, storageProbe, storagesOf } from "../wire.ts";

/** What Berth needs on this machine, whether it is there, and how to mend it. */
export interface Finding {
  readonly check: string;
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  readonly remedy: string | null;
}

type Found = Omit<Finding, "check">;

const ok = (detail: string): Found => ({ status: "ok", detail, remedy: null });
const warn = (detail: string, remedy: string): Found => ({ status: "warn", detail, remedy });
const fail = (detail: string, remedy: string): Found => ({ status: "fail", detail, remedy });

/** Examines the machine with these settings; Berth may run or not. `fix` installs what is missing, as a start does. */
export async function examine(config: Config, { fix }: { readonly fix: boolean }): Promise<readonly Finding[]> {
  const checks: Readonly<Record<string, () => Promise<readonly Found[]>>> = {
    platform: () => platformChecks(config),
    programs: () => programChecks(config, fix),
    replaced: async () => replacedChecks(config),
    isolation: () => isolationChecks(config),
    data_folder: () => dataFolderChecks(config),
    ports: () => portChecks(config),
    memory: async () => [memoryCheck(totalmem())],
    names: () => nameChecks(config),
    backups: () => storageChecks(config),
    recovery_key: async () => [recoveryKeyCheck(config)],
    service: () => serviceChecks(config),
  };
  const found: Finding[] = [];
  for (const [check, look] of Object.entries(checks)) {
    const answers = await look().catch((error: unknown) => [
      fail(sentence(error), "Mend the cause, then run this again."),
    ]);
    found.push(...answers.map((each) => ({ check, ...each })));
  }
  return found;
}

const sentence = (error: unknown) => (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";

async function platformChecks(config: Config): Promise<readonly Found[]> {
  const standby = unstartable(config.dataDir);
  if (standby !== null) return [warn(standby, "docs/platform-backups.md")];
  if (!isDataFolderHeld(config.dataDir)) return [warn(`Nothing runs on ${config.dataDir}.`, "Start it: berthd start")];
  const seen = await readReadiness(config);
  if (seen === null) return [fail("Berth runs, and does not answer.", "Its log says why.")];
  if (!seen.isReady) return [fail(`Not ready. ${seen.detail ?? ""}`.trim(), "berth status --platform --bad")];
  return [ok(`Berth ${seen.version} runs and is ready.`)];
}

async function programChecks(config: Config, install: boolean): Promise<readonly Found[]> {
  const { dataDir, toolEnvironment: environment, haproxy } = config;
  const edge = config.roles.includes("edge");
  const postgres = config.databaseUrl === null;
  const { missing } = await ensureMachine({ dataDir, log: silentLog, install, environment, postgres, edge, haproxy });
  if (missing.length === 0) return [ok("All programs are there.")];
  return missing.map(({ part, effect, command, required }) =>
    (required ? fail : warn)(`${part} is missing: ${effect}.`, command),
  );
}

/** Finds the database servers that run what an update has replaced. HAProxy is reloaded by itself. */
function replacedChecks({ dataDir, restartHours }: Config): readonly Found[] {
  const { ownPostgres, databases } = pathsIn(dataDir);
  const names = existsSync(databases) ? readdirSync(databases) : [];
  const running = [ownPostgres, ...names.map((name) => join(databases, name))].flatMap((dir) => readRunning(dir) ?? []);
  const old = running.filter((server) => isAlive(server) && runsReplacedFiles(server.pid)).length;
  if (old === 0) return [ok("No database server runs files that an update has replaced.")];
  const when =
    restartHours === null ? "never, as BERTH_RESTART_HOURS says" : "one by one, in the hours of BERTH_RESTART_HOURS";
  const remedy = "All at once, with the applications: systemctl restart berth-tenants berth";
  return [warn(`${old} database servers run files that an update has replaced. Berth restarts them ${when}.`, remedy)];
}

async function isolationChecks(config: Config): Promise<readonly Found[]> {
  const { bwrap, postgresBin } = await ensureMachine({
    ...{ dataDir: config.dataDir, log: silentLog, install: false, environment: config.toolEnvironment },
  });
  const works = bwrap !== null && (await run(bareSandbox(bwrap), { timeoutMs: 60_000 })).exitCode === 0;
  if (works) return [ok("bubblewrap works: builds, applications and databases are isolated.")];
  const remedy = "Install bubblewrap, and allow namespaces: docs/isolation.md.";
  const needed = config.isRoot && postgresBin !== null && config.databaseUrl === null;
  return [(needed ? fail : warn)("bubblewrap is missing or does not work here, so code is not isolated.", remedy)];
}

const bareSandbox = (file: string) => ({
  file,
  args: ["--ro-bind", "/", "/", "--unshare-pid", "--", "/usr/bin/env", "true"],
});

const smallestFreeBytes = 2 * 1024 ** 3;

async function dataFolderChecks(config: Config): Promise<readonly Found[]> {
  const { dataDir } = config;
  if (!existsSync(dataDir)) return [ok(`${dataDir} does not exist yet; the first start makes it.`)];
  const { uid, mode } = statSync(dataDir);
  if (uid !== process.getuid?.())
    return [fail(`${dataDir} belongs to another user (uid ${uid}).`, "Run Berth as that user, or set BERTH_DATA.")];
  if ((mode & 0o077) !== 0) return [fail(`${dataDir} is open to other users.`, `chmod 700 ${dataDir}`)];
  try {
    requireOwnDatabase(config);
  } catch (error) {
    return [fail(sentence(error), "docs/platform-backups.md restores a lost platform.")];
  }
  await dataDiskOf(config).probeWrite();
  const { bavail, bsize } = await statfs(dataDir);
  const free = `${bytesText(bavail * bsize)} are free on the disk of ${dataDir}.`;
  return [bavail * bsize < smallestFreeBytes ? warn(free, "Free some space: docs/data-folder.md.") : ok(free)];
}

async function portChecks(config: Config): Promise<readonly Found[]> {
  const { httpPort, sshPort, edgePort, listen } = config;
  if (isDataFolderHeld(config.dataDir))
    return [ok(`Berth listens on ${listen}, ports ${httpPort}, ${sshPort} and ${edgePort}.`)];
  try {
    await requireFreePorts(config, edgeListens(config));
    return [ok(`Ports ${httpPort}, ${sshPort} and ${edgePort} are free on ${listen}.`)];
  } catch (error) {
    if (error instanceof StartRefused) return [fail(sentence(error), "Then run this again.")];
    throw error;
  }
}

const smallestMemoryBytes = 1024 ** 3;

function memoryCheck(bytes: number): Found {
  const detail = `The machine has ${bytesText(bytes)} of memory.`;
  return bytes < smallestMemoryBytes ? warn(detail, "Builds of larger applications need 2 GiB.") : ok(detail);
}

/** Looks the names up that visitors use. */
async function nameChecks(config: Config): Promise<readonly Found[]> {
  const { publicAddresses } = domainSettingsOf(config, { has: () => false });
  const names = [config.host, `berth-doctor.${config.domain}`].filter(
    (name) => isIP(name) === 0 && !/(?:^|\.)localhost$/.test(name),
  );
  if (names.length === 0) return [ok("The platform serves names of this machine only.")];
  const dns = createDnsResolver({ servers: config.dnsServers, timeoutMs: 3000 });
  return Promise.all(
    names.map(async (name) => {
      const answer = await dns.addresses(name);
      const found = answer.outcome === "found" ? answer.values : [];
      const remedy = `Point ${name} (A or AAAA record${name === config.host ? "" : `; one for *.${config.domain} serves all applications`}) to ${publicAddresses.join(", ")}.`;
      if (found.length === 0) return fail(`${name} has no address.`, remedy);
      const isHere = found.some((address) => publicAddresses.includes(address));
      const detail = `${name} has the address ${found.join(", ")}.`;
      return isHere
        ? ok(detail)
        : warn(detail, `${remedy} If a proxy or NAT is in between, set BERTH_PUBLIC_ADDRESSES.`);
    }),
  );
}

async function storageChecks(config: Config): Promise<readonly Found[]> {
  const { standard, named } = storagesOf(config);
  const storage = named[standard];
  if (standard === "disk" || storage === undefined)
    return [
      warn(
        "Backups are on this machine's disk, and lost with it.",
        "Set BERTH_S3_URL, or copy the folder `backups` elsewhere.",
      ),
    ];
  const key = storageProbe;
  try {
    await storage.put(key, Readable.from([Buffer.from("probe")]));
    await (await storage.open(key)).toArray();
    await storage.delete(key);
    return [ok("The store of BERTH_S3_URL takes, returns and deletes a file.")];
  } catch (error) {
    return [
      fail(`The store of BERTH_S3_URL does not work: ${sentence(error)}`, "Look at its address, key and rights."),
    ];
  }
}

function recoveryKeyCheck({ dataDir }: Config): Found {
  const { recoveryKey, recoveryRecipient } = pathsIn(dataDir);
  if (existsSync(recoveryKey))
    return ok(`${recoveryKey} opens backups of the platform: keep a copy away from this machine.`);
  return ok(
    existsSync(recoveryRecipient) ? "The recovery key was moved away." : "The first start makes a recovery key.",
  );
}

async function serviceChecks(config: Config): Promise<readonly Found[]> {
  if (!existsSync("/run/systemd/system")) return [ok("This machine was not started with systemd.")];
  const scope = config.isRoot ? [] : ["--user"];
  const env = { PATH: systemPath, ...(config.isRoot ? {} : { XDG_RUNTIME_DIR: `/run/user/${process.getuid?.()}` }) };
  const { stdout } = await run({ file: "systemctl", args: [...scope, "is-enabled", unitNames.controlPlane] }, { env });
  if (stdout.trim() !== "enabled")
    return [warn("Berth is no service, so it ends with this terminal or a reboot.", "berthd service install")];
  return [ok(`${unitNames.controlPlane} starts with the machine.`)];
}
