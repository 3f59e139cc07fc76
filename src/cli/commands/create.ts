import type { Command } from "commander";
import { ApiError, type Answer, type Client } from "../../contract/client.ts";
import { runAttached } from "../../kit/exec.ts";
import { addCommand } from "../command-tree.ts";
import { findPlatform } from "../find-platform.ts";
import type { CliContext } from "../context.ts";
import { ApplicationExit } from "../failures.ts";
import { deployTemplate, findTemplate } from "./templates.ts";
import { answerForGit, passwordSetting } from "../git-credential.ts";
import { addRemote, currentBranch, remoteName, type RemoteOutcome } from "../git.ts";

interface RemoteOptions {
  readonly ssh?: boolean;
  readonly remote: string | false;
}

export function addCreate(program: Command, ctx: CliContext): void {
  const examples = [
    "berth create demo",
    'berth create shop --name "The shop"',
    "berth create web --remote web    # a second project of the same repository",
    "berth create demo --ssh    # push with an SSH key instead of the token of this login",
    "berth create demo --template django    # deploy a small application; `berth templates` lists them",
  ];
  addCommand(program, {
    usage: "create <slug>",
    summary: `Create a project and add the git remote "${remoteName}"`,
    examples,
  })
    .option("--name <name>", "a display name; by default the slug")
    .option("--ssh", sshText)
    .option("--remote <name>", "the name of the git remote, beside others", remoteName)
    .option("--no-remote", "don't add a git remote")
    .option("--template <name>", "deploy this small application at once, without a git remote")
    .action(async (slug: string, options: RemoteOptions & { name?: string; template?: string }) => {
      const client = await ctx.client();
      if (options.template !== undefined) return createFromTemplate(ctx, client, { ...options, slug });
      const project = await client.call("projects.create", { body: { slug, name: options.name ?? slug } });
      await connectFolder(ctx, project, { ...options, title: created(project) });
    });
}

interface FromTemplate {
  readonly slug: string;
  readonly name?: string;
  readonly template?: string;
}

async function createFromTemplate(ctx: CliContext, client: Client, { slug, name = slug, ...options }: FromTemplate) {
  const template = await findTemplate(client, options.template ?? "");
  const project = await client.call("projects.create", { body: { slug, name } });
  const deployment = await deployTemplate(ctx, client, slug, template);
  ctx.output.result(deployment, (paint) =>
    [`${paint.green("Live:")} ${project.url}`, `Its code: berth clone ${slug}`].join("\n"),
  );
}

const sshText = "push over SSH with a registered key instead of over HTTP with the token of this login";

/** Adds `berth clone`: git's own clone, with the password of this login and the remote's usual name. */
export function addClone(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "clone <slug> [folder]",
    summary: `Clone a project's repository; its git remote is "${remoteName}"`,
    examples: ["berth clone shop", "berth clone shop ~/shop --ssh"],
  })
    .option("--ssh", sshText)
    .action(async (slug: string, folder: string | undefined, { ssh = false }: { readonly ssh?: boolean }) => {
      const { git } = await (await ctx.client()).call("projects.get", { params: { slug } });
      const url = ssh ? git.ssh : await loginsUrl(ctx, git.https);
      const login = ssh ? [] : ["--config", passwordSetting(url).join("=")];
      const args = ["clone", "--origin", remoteName, ...login, "--", url, folder ?? slug];
      const { childEnvironment, cwd } = ctx.environment;
      const { url: BERTH_URL, token: BERTH_TOKEN = "" } = await findPlatform(ctx.environment, ctx.options);
      // git asks this program for the password, which then need not guess the login.
      const env = { ...childEnvironment, ...(ssh ? {} : { BERTH_URL, BERTH_TOKEN }) };
      throw new ApplicationExit((await runAttached({ file: "git", args }, { env, cwd })).exitCode ?? 1);
    });
}

export function addLink(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "link <slug>",
    summary: `Add the git remote "${remoteName}" of an existing project to this folder`,
    examples: ["git clone git@example.org:shop.git && cd shop && berth link shop", "berth link shop --ssh"],
  })
    .option("--ssh", sshText)
    .option("--remote <name>", "the name of the git remote, beside others", remoteName)
    .action(async (slug: string, options: RemoteOptions) => {
      const project = await (await ctx.client()).call("projects.get", { params: { slug } });
      await connectFolder(ctx, project, { ...options, title: `${project.slug} is at ${project.url}` });
    });
}

/** Adds the project's git remote to this folder, tells git the password, and prints the next steps. */
async function connectFolder(
  ctx: CliContext,
  project: Answer<"projects.get">,
  { title, ...options }: RemoteOptions & { readonly title: string },
): Promise<void> {
  const client = await ctx.client();
  const ssh = options.ssh === true;
  const url = ssh ? project.git.ssh : await loginsUrl(ctx, project.git.https);
  const name = options.remote === false ? remoteName : options.remote;
  const remote = options.remote === false ? undefined : await addRemote(ctx.environment, url, name);
  const knowsPassword = !ssh && remote !== undefined && (await answerForGit(ctx.environment, url));
  const hostKey = ssh ? [await hostKeyText(client)] : [];
  const steps = await nextSteps(ctx, client, { name, url, remote, ssh, knowsPassword });
  ctx.output.result(project, () =>
    [title, remoteText(remote, name, url), ...hostKey, ...steps].filter((line) => line !== "").join("\n"),
  );
}

/** Returns the host key text: the first push over SSH asks the user to confirm the fingerprint. */
async function hostKeyText(client: Client): Promise<string> {
  const { platform } = await client.call("me.get");
  return `At the first push, compare the host key's fingerprint that SSH shows: ${platform.ssh_host_key}`;
}

/** Returns the remote's URL with the login's address: git asks for the password of exactly that address, even if the platform has other names. */
async function loginsUrl(ctx: CliContext, remote: string): Promise<string> {
  const { url } = await findPlatform(ctx.environment, ctx.options);
  return new URL(new URL(remote).pathname, url).href;
}

function created(project: Answer<"projects.create">): string {
  return `Created ${project.slug}. After its first deploy it answers at ${project.url}`;
}

function remoteText(remote: RemoteOutcome | undefined, name: string, url: string): string {
  switch (remote?.outcome) {
    case "added":
      return `The git remote "${name}" points to ${url}`;
    case "already_there":
      return `The git remote "${name}" was there already.`;
    case "other_url":
      return `There is a git remote "${name}" already, with the URL ${remote.url}. Berth did not change it.`;
    case "failed":
      return `The git remote could not be added: ${remote.text}`;
    case "no_git":
      return "git was not found, so no remote was added.";
    case "no_repository":
    case undefined:
      return "";
  }
}

interface Situation {
  readonly name: string;
  readonly url: string;
  readonly remote: RemoteOutcome | undefined;
  readonly ssh: boolean;
  /** Whether git gets the password for this remote from the CLI. */
  readonly knowsPassword: boolean;
}

async function nextSteps(
  ctx: CliContext,
  client: Client,
  { name, url, remote, ssh, knowsPassword }: Situation,
): Promise<string[]> {
  const steps: string[] = [];
  if (ssh && (await hasNoKey(client))) steps.push("berth keys add ~/.ssh/id_ed25519.pub");
  if (remote?.outcome === "no_repository") steps.push("git init", "git add . && git commit -m 'First version'");
  if (remote?.outcome === "other_url") steps.push(`git remote set-url ${name} ${url}`);
  else if (remote?.outcome !== "added" && remote?.outcome !== "already_there")
    steps.push(`git remote add ${name} ${url}`);
  if (!ssh && !knowsPassword)
    steps.push(
      `git config ${passwordSetting(url)
        .map((word) => `"${word}"`)
        .join(" ")}`,
    );
  steps.push(`git push ${name} ${(await currentBranch(ctx.environment)) ?? "HEAD:main"}`);
  return ["Next:", ...steps.map((step) => `  ${step}`)];
}

// Used only for the hint at the next step, so a token without the right to list keys is not an error.
async function hasNoKey(client: Client): Promise<boolean> {
  try {
    return (await client.call("ssh-keys.list")).ssh_keys.length === 0;
  } catch (fault) {
    if (fault instanceof ApiError) return false;
    throw fault;
  }
}
