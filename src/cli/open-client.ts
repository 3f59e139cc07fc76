import { createClient, type Client } from "../contract/client.ts";
import type { GlobalOptions, Environment } from "./environment.ts";
import { CliError } from "./failures.ts";
import { findPlatform } from "./find-platform.ts";

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
