import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { limits, type ApiLimits } from "../contract/limits.ts";
import type { DiskLimits } from "../features/disk/disk.ts";
import type { HttpLimits } from "../http/http-limits.ts";
import { limitSettings, runtimeSettings } from "./application-settings.ts";
import { addressSettings, httpsSettings } from "./network-settings.ts";
import { pgSettings } from "./pg-settings.ts";
import { roleSettings } from "./roles.ts";
import { text, type Setting } from "./settings.ts";
import { operationSettings, retentionSettings } from "./upkeep-settings.ts";

const mib = 1024 * 1024;

/** Every setting, by concern, in the order of the documentation, with the reason why installations differ in them. All are environment variables. */
export const concerns = [
  {
    title: "Data, users and messages",
    why: "Each machine has its own users, disks and habits, and each operator another way to be reached.",
    settings: {
      dataDir: text("BERTH_DATA", "~/.berth").means("The data folder: everything that Berth stores is in it."),
      ...operationSettings,
    },
  },
  {
    title: "Addresses",
    why: "Ports may be taken, and only the operator knows the names, proxies and private networks around the machine.",
    settings: addressSettings,
  },
  {
    title: "HTTPS",
    why: "Certificates come from an authority or files of the operator's choice.",
    settings: httpsSettings,
  },
  {
    title: "Databases and processes",
    why: "An operator may have a PostgreSQL server, and may divide the control plane among machines.",
    settings: { ...pgSettings, ...roleSettings },
  },
  {
    title: "Runtimes and builds",
    why: "Engines, registries and base images are the operator's.",
    settings: runtimeSettings,
  },
  {
    title: "Limits",
    why: "What one project may take depends on the size of the machine and on its applications.",
    settings: limitSettings,
  },
  {
    title: "Backups and retention",
    why: "How long data is kept is a matter of law, trust and disk space.",
    settings: retentionSettings,
  },
] as const satisfies readonly {
  readonly title: string;
  readonly why: string;
  readonly settings: Readonly<Record<string, Setting<unknown>>>;
}[];

const settings = {
  ...concerns[0].settings,
  ...concerns[1].settings,
  ...concerns[2].settings,
  ...concerns[3].settings,
  ...concerns[4].settings,
  ...concerns[5].settings,
  ...concerns[6].settings,
} satisfies Record<string, Setting<unknown>>;

type Values = { readonly [K in keyof typeof settings]: (typeof settings)[K] extends Setting<infer T> ? T : never };

export interface Config extends Values {
  readonly isRoot: boolean;
  /** The control plane's name, and its further ones. */
  readonly host: string;
  readonly hosts: readonly string[];
  /** The largest pack that git may push, and the largest image. */
  readonly packMib: number;
  readonly imageMib: number;
  /** How long a release command may print nothing, and a build may neither print nor compute anything. */
  readonly silenceSeconds: number;
  /** The environment variables that package tools need to reach their registries. No other part of the environment is passed on. */
  readonly toolEnvironment: Readonly<Record<string, string>>;
}

/** The `BERTH_` variables as given, and PATH. */
export type GivenSettings = Readonly<Record<string, string>>;

/** Returns the settings in the environment, so that the systemd service starts with the same ones. */
export function givenSettings(environment: NodeJS.ProcessEnv = process.env): GivenSettings {
  const given = Object.entries(environment).filter(([name, value]) => value && /^(?:BERTH_\w+|PATH)$/.test(name));
  return Object.fromEntries(given) as GivenSettings;
}

/** Takes these settings where the environment has none. */
export function adoptSettings(settings: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(settings)) process.env[name] ??= value;
}

/** Reads the configuration; options override the environment. Throws one sentence for each wrong setting. Nothing else reads settings. */
export function readConfig(inherited = process.env, options: Readonly<Record<string, string>> = {}): Config {
  const environment = { ...inherited, ...options };
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(settings)) {
    try {
      values[key] = setting.read(emptyIsUnset(environment[setting.name]));
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  problems.push(...unknownSettings(environment));
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const config = values as unknown as Values;
  const [host = "localhost", ...hosts] = config.hostNames;
  return {
    ...config,
    ...{ host, hosts },
    packMib: Math.min(1024, Math.ceil(config.treeMib / 4)),
    imageMib: Math.ceil((config.imagesMib * 4) / 5),
    silenceSeconds: Math.ceil(config.buildSeconds / 3),
    dataDir: resolve(config.dataDir.replace(/^~(?=$|\/)/, environment["HOME"] ?? homedir())),
    caFile: config.caFile ?? emptyIsUnset(environment["SSL_CERT_FILE"]) ?? null,
    isRoot: process.getuid?.() === 0,
    toolEnvironment: toolEnvironment(environment),
  };
}

export function pathsIn(dataDir: string) {
  return {
    adminToken: join(dataDir, "admin-token"),
    keyFile: join(dataDir, "secrets.key"),
    lock: join(dataDir, "berthd.lock"),
    ownPostgres: join(dataDir, "control-database"),
    recoveryKey: join(dataDir, "recovery.key"),
    recoveryRecipient: join(dataDir, "recovery.pub"),
    storageKey: join(dataDir, "storage.key"),
    packing: join(dataDir, "platform-backup"),
    restoring: join(dataDir, "restoring"),
    standby: join(dataDir, "standby"),
    controlCopies: join(dataDir, "control-copies"),
    upgrade: join(dataDir, "upgrade"),
    databases: join(dataDir, "databases"),
    repositories: join(dataDir, "repositories"),
    git: join(dataDir, "git"),
    hostKey: join(dataDir, "ssh", "host_ed25519"),
    releases: join(dataDir, "releases"),
    builds: join(dataDir, "builds"),
    caches: join(dataDir, "caches"),
    compiledCode: join(dataDir, "compiled-code"),
    dashboard: join(dataDir, "dashboard"),
    storage: join(dataDir, "storage"),
    runtime: join(dataDir, "runtime"),
    containers: join(dataDir, "containers"),
    buildEngine: join(dataDir, "build-engine"),
    outbox: join(dataDir, "outbox"),
    sandbox: join(dataDir, "sandbox"),
    edge: join(dataDir, "edge"),
    haproxy: join(dataDir, "haproxy"),
    logs: join(dataDir, "logs"),
    backups: join(dataDir, "backups"),
  };
}

// Variables of the start scripts and the command line, which the daemon does not read.
const elsewhere = new Set(["BERTH_NODE", "BERTH_TOKEN", "BERTH_URL", "BERTH_PROJECT", "BERTH_TOOLCHAIN"]);

/** Returns an error for each unknown `BERTH_` variable: a misspelt setting would silently do nothing. */
function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const known = new Set<string>(Object.values(settings).map((setting) => setting.name));
  return Object.keys(environment)
    .filter(
      (name) =>
        name.startsWith("BERTH_") && !name.startsWith("BERTH_TEST_") && !known.has(name) && !elsewhere.has(name),
    )
    .map((name) => `${name} is not a setting of Berth. Correct or remove it; docs/config.md lists all settings.`);
}

function emptyIsUnset(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

/** Converts a setting in MiB to bytes. */
export function mibToBytes(count: number): number {
  return count * mib;
}

/** Returns the user id before which that of the control plane's own database and that of git lie, and after which those of projects' databases. */
export function firstDatabaseUid({ uidBase }: Pick<Config, "uidBase">): number {
  return uidBase + 15_000;
}

/** Returns the variables of the control plane's environment that package managers and other tools get. */
function toolEnvironment(environment: NodeJS.ProcessEnv): Record<string, string> {
  // npm sets these for the scripts that it runs (npm start is one). They describe this package, not the operator's registry settings.
  const aboutThisRun =
    /^npm_config_(local_prefix|global_prefix|prefix|node_gyp|noproxy|user_agent|init_module|cache)$/i;
  const entries = Object.entries(environment).filter(
    ([name, value]) => value !== undefined && forTools.test(name) && !aboutThisRun.test(name),
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

const forTools =
  /^(PATH|HOME|LANG|TZ|(https?|no|all)_proxy|npm_config_.*|pip_.*|goproxy|gosumdb|goflags|goprivate|ssl_cert_(file|dir)|node_extra_ca_certs|node_use_system_ca|requests_ca_bundle|curl_ca_bundle)$/i;

/** The operator has to change something before Berth can start. The message says what; no stack is printed. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}

export function httpLimitsOf(config: Config): Partial<HttpLimits> {
  return {
    readsPerMinute: config.readsPerMinute,
    writesPerMinute: config.writesPerMinute,
  };
}

/** Returns how much disk one project may use, unless the operator set limits for it. */
export function diskLimitsOf(config: Config): DiskLimits {
  return {
    storage_bytes: mibToBytes(config.storageMib),
    database_bytes: mibToBytes(config.databaseDiskMib),
    images_bytes: mibToBytes(config.imagesMib),
    backups_bytes: mibToBytes(config.backupsMib),
  };
}

type PushLimits = Pick<ApiLimits, "pack_bytes" | "tree_entries" | "tree_bytes" | "build_log_bytes">;

export function pushLimitsOf(config: Config): PushLimits {
  return {
    pack_bytes: mibToBytes(config.packMib),
    tree_entries: limits.tree_entries,
    tree_bytes: mibToBytes(config.treeMib),
    build_log_bytes: limits.build_log_bytes,
  };
}
