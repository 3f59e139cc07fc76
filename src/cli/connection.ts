import { createClient, type Client } from "../contract/client.ts";
import type { GlobalOptions, Environment } from "./environment.ts";
import { readConfig, type Config, type KnownPlatform } from "./config-file.ts";
import { CliError, usageError } from "./failures.ts";

/** Opens the client for the selected platform: `--context`, else BERTH_URL and BERTH_TOKEN, else the current context. */
export async function openClient(
  environment: Environment,
  options: GlobalOptions,
  anonymous: boolean,
): Promise<Client> {
  const { url, token } = await findPlatform(environment, options);
  if (token === undefined && !anonymous) {
    throw new CliError("unauthorized", "not_logged_in", {
      message: `You are not logged in to ${url}.`,
      hint: "Run `berth login`, or set BERTH_TOKEN.",
    });
  }
  return createClient({ baseUrl: url, token });
}

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
