import { createClient, type Client } from "../contract/client.ts";
import type { Environment, GlobalOptions } from "./environment.ts";
import { CliError, usageError } from "./failures.ts";
import { findPlatform } from "./find-platform.ts";
import { nameMissing } from "../client/name-missing.ts";
import { createOutput, type Output } from "./render/output.ts";
import { listHint } from "./route-commands.ts";
import { remoteName, remoteUrl, slugOfRemote } from "./git.ts";

export interface CliContext {
  readonly environment: Environment;
  /** The global options; filled in once the command line is parsed. */
  readonly options: GlobalOptions;
  readonly output: Output;
  readonly signal: AbortSignal;
  /** What continues after Ctrl-C; set by a command that only watches it. */
  goesOn?: string;
  /** Returns the client with the user's token; throws without a login. `anonymous` is for rows that need no token. */
  readonly client: (how?: { anonymous: boolean }) => Promise<Client>;
}

/** Creates the context of a run. Reads no files and sends nothing until a command needs it. */
export function createContext(environment: Environment, signal: AbortSignal): CliContext {
  const options: GlobalOptions = {};
  const output = createOutput(environment, options);
  const client: CliContext["client"] = async (how) =>
    nameMissing(await openClient(environment, options, how?.anonymous ?? false), listHint);
  return { environment, options, output, signal, client };
}

/** Opens the client for the selected platform: `--context`, else BERTH_URL and BERTH_TOKEN, else the current context. */
async function openClient(environment: Environment, options: GlobalOptions, anonymous: boolean): Promise<Client> {
  const { url, token } = await findPlatform(environment, options);
  if (token === undefined && !anonymous) {
    throw new CliError("unauthorized", "not_logged_in", {
      message: `You are not logged in to ${url}.`,
      hint: "Run `berth login`, or set BERTH_TOKEN.",
    });
  }
  return createClient({ baseUrl: url, token });
}

/** Returns the selected project: the argument, `--project`, BERTH_PROJECT, else the one of the folder's git remote. Throws if none is selected. */
export async function currentProject(ctx: CliContext, given?: string): Promise<string> {
  const slug = given ?? (await namedProject(ctx));
  if (slug !== undefined) return slug;
  throw usageError(
    "Which project?",
    `Name it with --project, or run this in a repository with a git remote "${remoteName}" (\`berth create\` adds one).`,
  );
}

/** Returns the selected project, and the client with the user's token. */
export async function openProject(ctx: CliContext, given?: string) {
  return { slug: await currentProject(ctx, given), client: await ctx.client() };
}

/** Returns the selected project, or undefined if none is. */
export async function namedProject(ctx: CliContext): Promise<string | undefined> {
  const named = ctx.options.project ?? ctx.environment.project;
  if (named !== undefined) return named;
  const url = await remoteUrl(ctx.environment);
  return url === undefined ? undefined : slugOfRemote(url);
}
