import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { createClient } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import { readConfig, writeConfig } from "../config-file.ts";
import { isSameUrl } from "../find-platform.ts";
import type { CliContext } from "../context.ts";
import { CliError, usageError } from "../failures.ts";
import { readInput } from "../input.ts";
import { endLogin, isLoopback, logIn } from "../log-in.ts";
import { ask, canAsk } from "../prompts.ts";
import { oneLine } from "../render/text.ts";

const tokenHint =
  "On the platform's machine, a file holds one: `berth login <url> --token-file <data folder>/admin-token`.";

/** Adds `berth login`: gets a token by consent in a browser, or from a file, stdin or a hidden prompt, never from the command line. */
export function addLogin(program: Command, ctx: CliContext): void {
  const examples = [
    "berth login                                # on the machine that runs the platform",
    "berth login https://berth.example.org      # opens a browser",
    "berth login https://berth.example.org --device      # shows a code to type in any browser",
    "berth login https://berth.example.org --token-file token.txt --context work",
    'printf %s "$TOKEN" | berth login https://berth.example.org --token-file -',
  ];
  addCommand(program, { usage: "login [url]", summary: "Log in to a platform", examples })
    .option("--token-file <file>", "a file with the token; - is stdin")
    .option("--device", "log in with a code that you type in a browser anywhere")
    .action(async (given: string | undefined, { tokenFile: file, device }: LoginOptions) => {
      const url = given ?? ctx.environment.url ?? ctx.environment.defaultUrl;
      // Validate the URL before asking for a token.
      createClient({ baseUrl: url });
      const token = (await findToken(ctx, { url, named: given !== undefined, file, device })).trim();
      if (token === "") throw usageError("There is no token: what was read is empty.", tokenHint);
      if (!/^[\x21-\x7e]+$/.test(token))
        throw usageError("That is not a token.", "A token is one word, such as berth_m_…");
      const client = createClient({ baseUrl: url, token });
      const me = await client.call("me.get");
      const name = await remember(ctx, { url: client.baseUrl, token });
      warnOfPlainHttp(ctx, url);
      ctx.output.result(
        me,
        () =>
          `Logged in to ${client.baseUrl} as ${me.person === null ? "" : `${oneLine(me.person.name, 40)}, `}${me.platform_admin ? "platform admin" : me.role} of ${me.organization.slug} (context "${name}").`,
      );
    });
}

interface LoginOptions {
  tokenFile?: string;
  device?: boolean;
}

interface Search {
  readonly url: string;
  readonly named: boolean;
  readonly file: string | undefined;
  readonly device: boolean | undefined;
}

async function findToken(ctx: CliContext, { url, named, file, device }: Search): Promise<string> {
  if (file !== undefined) return readInput(ctx, file);
  if (device === true) return (await logIn(ctx, withoutSlash(url), "device")) ?? noConsentPage(url);
  if (ctx.environment.token !== undefined) return ctx.environment.token;
  const adminToken = join(ctx.environment.dataDir, "admin-token");
  // The operator's token is used only for this machine, and only if no other source was named.
  if (!named && isLoopback(url) && existsSync(adminToken)) return readInput(ctx, adminToken);
  if (canAsk(ctx)) {
    const token = await logIn(ctx, withoutSlash(url), ctx.environment.hasBrowser ? "browser" : "device");
    return token ?? ask(ctx, `Token for ${url}: `, true);
  }
  if (named) return readInput(ctx, "-");
  throw new CliError("unauthorized", "not_logged_in", {
    message: `There is no token: ${adminToken} does not exist.`,
    hint: "Start the platform on this machine first. If it uses another data folder, set BERTH_DATA to that folder, or run `berth login <url> --token-file <file>`.",
  });
}

const withoutSlash = (url: string) => url.replace(/\/+$/, "");

function noConsentPage(url: string): never {
  throw usageError(`${url} offers no login by a browser.`, tokenHint);
}

async function remember(ctx: CliContext, platform: { url: string; token: string }): Promise<string> {
  const { configFile } = ctx.environment;
  const config = await readConfig(configFile);
  const known = Object.entries(config.contexts).find(([, other]) => isSameUrl(other.url, platform.url))?.[0];
  const name = ctx.options.context ?? known ?? new URL(platform.url).host;
  const replaced = config.contexts[name];
  if (replaced !== undefined && replaced.token !== platform.token) await endLogin(ctx, replaced);
  await writeConfig(configFile, { current: name, contexts: { ...config.contexts, [name]: platform } });
  return name;
}

function warnOfPlainHttp(ctx: CliContext, url: string): void {
  if (new URL(url).protocol === "https:" || isLoopback(url)) return;
  ctx.output.note(
    (paint) => `${paint.yellow("Warning:")} ${url} is not encrypted: anyone on the network path can read the token.`,
  );
}

/** Adds `berth logout`: deletes the stored token, and ends it if `berth login` got it by a person's consent. */
export function addLogout(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "logout",
    summary: "Forget the token of the current context",
    examples: ["berth logout", "berth logout --context work"],
  }).action(async () => {
    const { configFile } = ctx.environment;
    const config = await readConfig(configFile);
    const name = ctx.options.context ?? config.current;
    if (name === null || config.contexts[name] === undefined)
      throw new CliError("unauthorized", "not_logged_in", { message: "You are not logged in." });
    const { [name]: forgotten, ...contexts } = config.contexts;
    const current = config.current === name ? (Object.keys(contexts)[0] ?? null) : config.current;
    await writeConfig(configFile, { current, contexts });
    const isOver = forgotten !== undefined && (await endLogin(ctx, forgotten));
    const rest = isOver ? "" : " The token itself stays valid until it expires or is revoked.";
    ctx.output.note(() => `Logged out of ${forgotten?.url}.${rest}`);
    if (current !== null) ctx.output.note(() => `The current context is now "${current}".`);
  });
}
