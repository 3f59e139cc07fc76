import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { addressesOf } from "../adapters/builder-docker/registry-access.ts";
import { run } from "../kit/exec.ts";
import { parseJson } from "../kit/parse-json.ts";
import type { Config } from "./config.ts";
import type { MachineParts } from "./setup/machine.ts";

/** How builds reach package registries: the operator's settings of npm, pip and Go, and the folders that these name. */
export type PackageSettings = Awaited<ReturnType<typeof readPackageSettings>>;

// Of npm's settings only those for reaching packages: the operator's preferences for its behaviour and output are not for tenants' builds.
const perProgram =
  /^(npm_config_(?:(?:@[^:]+:)?registry|(?:https?_?)?proxy|no_?proxy|cafile|ca|strict_ssl|maxsockets|fetch_\w+)$|pip_|go(proxy|sumdb|flags|private)$|cargo_(?:registr|net_|http_|source_)|(https?|no|all)_proxy$)/i;
const timeoutMs = 10_000;

/** Reads the settings once at the start. It omits those that can't be read, so the package managers' defaults apply. */
export async function readPackageSettings(config: Config, parts: MachineParts) {
  const environment = config.toolEnvironment;
  const given = Object.fromEntries(Object.entries(environment).filter(([name]) => perProgram.test(name)));
  const npm = await npmSettings(config, parts.npm);
  const pip = pipSettings(environment["HOME"]);
  const ownEnv: Record<string, string> = { ...npm, ...pip, ...given };
  const withheld = Object.keys(ownEnv).filter((name) => holdsCredentials(ownEnv[name] as string));
  const env = Object.fromEntries(Object.entries(ownEnv).filter(([name]) => !withheld.includes(name)));
  const links = (env["PIP_FIND_LINKS"] ?? "").split(/\s+/).filter((each) => isAbsolute(each) && existsSync(each));
  const goRoot = await goRootOf(config, parts.go);
  return {
    env,
    /** `env` plus the settings that hold the operator's credentials, for the platform's own npm only. */
    ownEnv,
    /** The names of the settings that builds do not get because they hold credentials. */
    withheld,
    dirs: links,
    /** npm's package folder; null if this machine has no npm. */
    npmDir: packageFolder(parts.npm),
    goRoot,
  };
}

/** Returns the addresses of the servers in these settings, which builds must reach also in a private network. */
export async function packageServersOf(env: PackageSettings["env"]) {
  const urls = Object.values(env).flatMap((value) => value.match(/https?:\/\/[^\s,|"']+/g) ?? []);
  const hosts = urls
    .filter((url) => URL.canParse(url))
    .map((url) => {
      const { hostname, port, protocol } = new URL(url);
      return `${hostname}:${port || (protocol === "http:" ? 80 : 443)}`;
    });
  return addressesOf([...new Set(hosts)]);
}

/** Returns whether a URL in the value contains a user or a token. A build runs its project's own code, which could read it. */
function holdsCredentials(value: string): boolean {
  return /:\/\/[^/\s?#]*@|(?:^|[\s,|])[^/:@\s]+:[^/@\s]*@/.test(value);
}

/** Returns only the npm settings that decide where packages come from; a token for a private registry stays with the operator. */
async function npmSettings(config: Config, npm: string | null): Promise<Record<string, string>> {
  if (npm === null) return {};
  const listed = await run(
    { file: npm, args: ["config", "list", "--json"] },
    { env: config.toolEnvironment, timeoutMs },
  ).catch(() => undefined);
  const found = parseJson<Record<string, unknown>>(listed?.stdout ?? "") ?? {};
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

/** Reads pip's configuration files: the user's settings override the machine's (pip's documentation, "Configuration"). */
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
