import { readConfig, type Config, type KnownPlatform } from "./config-file.ts";
import type { Environment, GlobalOptions } from "./environment.ts";
import { usageError } from "./failures.ts";

/** Returns the selected URL, and a token if there is one for exactly that URL: a stored token is never sent anywhere else. */
export async function findPlatform(
  environment: Environment,
  options: GlobalOptions,
): Promise<{ url: string; token: string | undefined }> {
  const { url, token } = environment;
  if (options.context !== undefined) return named(await readConfig(environment.configFile), options.context);
  if (url !== undefined && token !== undefined) return { url, token };
  const config = await readConfig(environment.configFile);
  if (url !== undefined) return { url, token: knownAt(config, url)?.token };
  const known = current(config);
  return { url: known?.url ?? environment.defaultUrl, token: token ?? known?.token };
}

/** Returns whether two spellings of a URL mean the same platform. */
export function isSameUrl(one: string, other: string): boolean {
  return withoutSlash(one) === withoutSlash(other);
}

function current(config: Config): KnownPlatform | undefined {
  return config.current === null ? undefined : config.contexts[config.current];
}

function named(config: Config, name: string): KnownPlatform {
  const known = config.contexts[name];
  if (known === undefined) throw usageError(`There is no context "${name}".`, "`berth contexts` lists them.");
  return known;
}

function knownAt(config: Config, url: string): KnownPlatform | undefined {
  return [current(config), ...Object.values(config.contexts)].find(
    (known) => known !== undefined && isSameUrl(known.url, url),
  );
}

function withoutSlash(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/\/+$/, "");
}
