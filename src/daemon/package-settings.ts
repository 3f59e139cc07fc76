import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { run } from "../kit/exec.ts";
import type { Config } from "./config.ts";
import type { MachineParts } from "./setup/machine.ts";

/** How builds reach package registries: the operator's own settings of npm, pip and Go, and folders that they name. */
export interface PackageSettings {
  readonly env: Readonly<Record<string, string>>;
  /** The same with those that hold the operator's credentials, for the platform's own npm alone. */
  readonly ownEnv: Readonly<Record<string, string>>;
  /** The names of those that builds do not get for that. */
  readonly withheld: readonly string[];
  readonly dirs: readonly string[];
  /** The package folder of npm; null when the machine has none. */
  readonly npmDir: string | null;
  readonly goRoot: string | null;
}

// Of npm's settings only those on the way to packages: how the operator likes npm to behave or to print is not for others' builds.
const perProgram =
  /^(npm_config_(?:(?:@[^:]+:)?registry|(?:https?_?)?proxy|no_?proxy|cafile|ca|strict_ssl|maxsockets|fetch_\w+)$|pip_|go(proxy|sumdb|flags|private)$|cargo_(?:registr|net_|http_|source_)|(https?|no|all)_proxy$)/i;
const timeoutMs = 10_000;

/** Reads them once at the start. What cannot be read is left out: the package managers' own defaults hold then. */
export async function readPackageSettings(config: Config, parts: MachineParts): Promise<PackageSettings> {
  const environment = config.toolEnvironment;
  const given = Object.fromEntries(Object.entries(environment).filter(([name]) => perProgram.test(name)));
  const npm = await npmSettings(config, parts.npm);
  const pip = pipSettings(environment["HOME"]);
  const ownEnv: Record<string, string> = { ...npm, ...pip, ...given };
  const withheld = Object.keys(ownEnv).filter((name) => holdsCredentials(ownEnv[name] as string));
  const env = Object.fromEntries(Object.entries(ownEnv).filter(([name]) => !withheld.includes(name)));
  const links = (env["PIP_FIND_LINKS"] ?? "").split(/\s+/).filter((each) => isAbsolute(each) && existsSync(each));
  const goRoot = await goRootOf(config, parts.go);
  return { env, ownEnv, withheld, dirs: links, npmDir: packageFolder(parts.npm), goRoot };
}

/** Whether an address names a user or a token. A build is its project's own code, which would read it. */
function holdsCredentials(value: string): boolean {
  return /:\/\/[^/\s?#]*@|(?:^|[\s,|])[^/:@\s]+:[^/@\s]*@/.test(value);
}

/** Only what decides where packages come from; a token for a private registry stays with the operator. */
async function npmSettings(config: Config, npm: string | null): Promise<Record<string, string>> {
  if (npm === null) return {};
  const listed = await run(
    { file: npm, args: ["config", "list", "--json"] },
    { env: config.toolEnvironment, timeoutMs },
  ).catch(() => undefined);
  const found = parseObject(listed?.stdout ?? "");
  const wanted = {
    registry: "npm_config_registry",
    proxy: "npm_config_proxy",
    "https-proxy": "npm_config_https_proxy",
    noproxy: "npm_config_noproxy",
  } as const;
  const pairs = Object.entries(wanted).flatMap(([key, name]) => {
    const value = found[key];
    return typeof value === "string" && value !== "" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(pairs);
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** pip's configuration files in their order of precedence (pip's documentation, "Configuration"): user before machine. */
function pipSettings(home: string | undefined): Record<string, string> {
  const files = [
    "/etc/pip.conf",
    ...(home === undefined ? [] : [join(home, ".pip/pip.conf"), join(home, ".config/pip/pip.conf")]),
  ];
  const settings: Record<string, string> = {};
  for (const file of files) {
    if (!existsSync(file)) continue;
    for (const [, key = "", value = ""] of readFileSync(file, "utf8").matchAll(
      /^\s*(index-url|extra-index-url|find-links|trusted-host|proxy)\s*[=:]\s*(\S+)/gm,
    )) {
      settings[`PIP_${key.toUpperCase().replaceAll("-", "_")}`] = value;
    }
  }
  return settings;
}

function packageFolder(npm: string | null): string | null {
  if (npm === null) return null;
  const folder = dirname(dirname(realpathSync(npm)));
  return existsSync(join(folder, "package.json")) ? folder : null;
}

async function goRootOf(config: Config, go: string | null): Promise<string | null> {
  if (go === null) return null;
  const asked = await run({ file: go, args: ["env", "GOROOT"] }, { env: config.toolEnvironment, timeoutMs }).catch(
    () => undefined,
  );
  return asked?.exitCode === 0 && asked.stdout.trim() !== "" ? asked.stdout.trim() : null;
}
