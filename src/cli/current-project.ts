import type { CliContext } from "./context.ts";
import { usageError } from "./failures.ts";
import { remoteName, remoteUrl, slugOfRemote } from "./git.ts";

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
