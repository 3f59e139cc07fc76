import { run } from "../kit/exec.ts";
import type { Environment } from "./environment.ts";

export const remoteName = "berth";

const timeoutMs = 10_000;

/** Returns the URL of a remote of the current folder's repository; undefined without repository, remote or git. */
export async function remoteUrl(environment: Environment, remote = remoteName): Promise<string | undefined> {
  const answer = await git(environment, ["remote", "get-url", "--", remote]);
  return answer?.ok === true ? answer.text : undefined;
}

export async function addRemote(environment: Environment, url: string, remote = remoteName): Promise<RemoteOutcome> {
  const inside = await git(environment, ["rev-parse", "--git-dir"]);
  if (inside === undefined) return { outcome: "no_git" };
  if (!inside.ok) return { outcome: "no_repository" };
  const present = await remoteUrl(environment, remote);
  if (present !== undefined) return { outcome: present === url ? "already_there" : "other_url", url: present };
  const added = await git(environment, ["remote", "add", "--", remote, url]);
  return added?.ok === true ? { outcome: "added" } : { outcome: "failed", text: added?.text ?? "" };
}

/** Changes the URL of a remote; resolves to false on failure. */
export async function setRemoteUrl(environment: Environment, url: string): Promise<boolean> {
  return (await git(environment, ["remote", "set-url", "--", remoteName, url]))?.ok === true;
}

export type RemoteOutcome =
  | { readonly outcome: "no_git" | "no_repository" | "added" }
  | { readonly outcome: "already_there" | "other_url"; readonly url: string }
  | { readonly outcome: "failed"; readonly text: string };

/** Sets a value in the repository's own configuration; resolves to false on failure. */
export async function setLocalConfig(environment: Environment, key: string, value: string): Promise<boolean> {
  return (await git(environment, ["config", "--local", key, value]))?.ok === true;
}

/** Returns the root folder of the current repository; outside a repository, the current folder. */
export async function repositoryRoot(environment: Environment): Promise<string> {
  const answer = await git(environment, ["rev-parse", "--show-toplevel"]);
  return answer?.ok === true ? answer.text : environment.cwd;
}

/** Returns the checked-out branch; undefined on a detached HEAD or outside a repository. */
export async function currentBranch(environment: Environment): Promise<string | undefined> {
  const answer = await git(environment, ["symbolic-ref", "--quiet", "--short", "HEAD"]);
  return answer?.ok === true ? answer.text : undefined;
}

/** Returns the slug in one of the platform's remote URLs: `ssh://git@host:2222/main/demo.git`, `https://host/git/main/demo.git`. */
export function slugOfRemote(url: string): string | undefined {
  const path = URL.parse(url)?.pathname;
  return path?.match(/^\/(?:git\/)?[a-z0-9-]+\/([a-z0-9-]+)\.git\/?$/)?.[1];
}

// Runs git; resolves to undefined if git is not installed.
async function git(
  environment: Environment,
  args: readonly string[],
): Promise<{ ok: boolean; text: string } | undefined> {
  try {
    const ended = await run(
      { file: "git", args },
      { cwd: environment.cwd, env: environment.childEnvironment, timeoutMs },
    );
    return { ok: ended.exitCode === 0, text: (ended.exitCode === 0 ? ended.stdout : ended.stderr).trim() };
  } catch {
    return undefined;
  }
}
