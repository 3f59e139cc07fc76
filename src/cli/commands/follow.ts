import type { Command } from "commander";
import type { Answer, Client } from "../../contract/client.ts";
import { followProviders } from "../../contract/follow.ts";
import { until } from "../../kit/until.ts";
import { actCommand, addCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { CliError, usageError } from "../failures.ts";
import { askSecret } from "../prompts.ts";
import { facts, oneLine, relativeTime, table, type Paint } from "../render/text.ts";
import { showPlan } from "../show-plan.ts";

type Follow = Answer<"follow.get">;
type Delivery = Answer<"follow.deliveries">["deliveries"][number];

interface FollowOptions {
  readonly branch?: string;
  readonly provider?: string;
  readonly token?: true;
  readonly tokenStdin?: true;
  readonly hostKey?: string;
  readonly status?: true;
  readonly deliveries?: true;
  readonly now?: true;
  readonly plan?: true;
}

/** Adds `berth follow` and `berth unfollow`: deploys from GitHub, GitLab, Gitea and other git servers. */
export function addFollow(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "follow [url]",
    summary: "Follow a branch on GitHub, GitLab, Gitea or another git server: from now on each new commit is deployed",
    examples: [
      "berth follow git@github.com:acme/shop.git",
      "berth follow https://gitlab.com/acme/shop.git --branch release --token",
      "berth follow git@git.example.com:acme/shop.git --host-key SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
      "berth follow --status",
      "berth follow --deliveries",
      "berth follow --plan",
      "berth follow --now",
    ],
  })
    .option("--branch <name>", "the branch; by default main")
    .option("--provider <kind>", `one of ${followProviders.join(", ")}; by default detected from the host's name`)
    .option("--token", "ask for an access token: reads a private repository over HTTPS, sets commit statuses")
    .option("--token-stdin", "read that token from stdin")
    .option(
      "--host-key <key>",
      "the fingerprint (SHA256:…) or public key that the SSH host must present; by default its first one",
    )
    .option("--deliveries", "list what triggered fetches, and their results")
    .option("--status", "show what is followed and the newest deliveries")
    .option("--now", "fetch the branch now, and deploy its newest commit even if it failed before")
    .option(
      "--plan",
      "fetch the branch now, and show what a deploy of its newest commit would do; with a URL, deploy nothing yet",
    )
    .action(async (url: string | undefined, options: FollowOptions) => {
      const slug = await currentProject(ctx);
      if (url !== undefined) return start(ctx, { slug, url }, options);
      if (options.plan === true) return planNow(ctx, slug);
      if (options.now === true) return fetchNow(ctx, slug);
      if (options.deliveries === true) return showDeliveries(ctx, slug);
      return showStatus(ctx, slug);
    });
  addUnfollow(program, ctx);
}

async function start(ctx: CliContext, { slug, url }: { slug: string; url: string }, options: FollowOptions) {
  const provider = followProviders.find((each) => each === options.provider);
  if (options.provider !== undefined && provider === undefined)
    throw usageError(`--provider: "${options.provider}" is not one of ${followProviders.join(", ")}.`);
  const from = { stdin: options.tokenStdin === true, option: "--token-stdin" };
  const token = from.stdin || options.token === true ? (await askSecret(ctx, "Access token", from)).trim() : undefined;
  const { branch = "main", hostKey: host_key } = options;
  const deploy = options.plan !== true;
  const body = { url, branch, provider, token, host_key, deploy };
  const made = await (await ctx.client()).call("follow.set", { params: { slug }, body });
  ctx.output.result(made, (paint) => describeStart(paint, slug, { ...made, deploy }));
}

type Started = Answer<"follow.set"> & { readonly deploy: boolean };

function describeStart(paint: Paint, slug: string, made: Started): string {
  const lines = [`${slug} follows the branch ${made.branch} of ${made.url}.`];
  if (made.public_key !== null)
    lines.push(
      "",
      "Add this deploy key to the repository on its host; read access is enough:",
      `  ${paint.bold(made.public_key)}`,
    );
  if (made.secret !== null)
    lines.push(
      "",
      "Add a webhook for pushes to the repository on its host (content type application/json), so that Berth deploys each push at once:",
      `  URL     ${made.hook_url}`,
      `  secret  ${paint.bold(made.secret)}  (shown this once)`,
    );
  if (!made.deploy) lines.push("", "`berth follow --plan` shows what a deploy would do; `berth follow --now` deploys.");
  else lines.push("", "`berth follow --now` fetches the branch now; `berth follow --status` shows the result.");
  return lines.join("\n");
}

async function showStatus(ctx: CliContext, slug: string): Promise<void> {
  const client = await ctx.client();
  const params = { slug };
  const follow = await client.call("follow.get", { params });
  const { deliveries } = await client.call("follow.deliveries", { params });
  ctx.output.result({ ...follow, deliveries }, (paint) =>
    [describe(paint, follow), deliveryTable(paint, deliveries.slice(0, 15))].join("\n\n"),
  );
}

async function showDeliveries(ctx: CliContext, slug: string): Promise<void> {
  const answer = await (await ctx.client()).call("follow.deliveries", { params: { slug } });
  ctx.output.result(answer, (paint) => deliveryTable(paint, answer.deliveries));
}

function describe(paint: Paint, follow: Follow): string {
  const { commit, fetched_at, problem } = follow;
  return facts(paint, [
    ["Repository", `${follow.url}, branch ${follow.branch} (${follow.provider})`],
    ["Fetched", commit === null ? "not yet" : `${commit.slice(0, 8)}, ${relativeTime(fetched_at ?? "")}`],
    ["Problem", problem && paint.red(oneLine(problem, 300))],
    ["Statuses", follow.status_problem && paint.red(oneLine(follow.status_problem, 300))],
    ["Deploy key", follow.public_key],
    ["Host key", follow.host_key],
    ["Webhook", follow.hook_url],
  ]);
}

function deliveryTable(paint: Paint, deliveries: readonly Delivery[]): string {
  const rows = deliveries.map((each) => [
    relativeTime(each.received_at),
    oneLine(each.branch === null ? each.event : `${each.event} ${each.branch}`, 40),
    each.commit?.slice(0, 8) ?? "-",
    outcomeOf(each),
  ]);
  return table(paint, ["RECEIVED", "EVENT", "COMMIT", "OUTCOME"], rows, "There are no deliveries yet.");
}

function outcomeOf({ status, reason, build }: Delivery): string {
  if (build === null) return reason === null ? status : `${status}: ${oneLine(reason, 120)}`;
  const { deployment } = build;
  return deployment === null
    ? `build ${build.number} ${build.status}`
    : `deployment ${deployment.number} ${deployment.status}`;
}

const waitMs = 120_000;

async function fetchNow(ctx: CliContext, slug: string): Promise<void> {
  const { ended, problem } = await fetchBranch(await ctx.client(), slug, true);
  ctx.output.result(ended, () => {
    if (ended.build !== null)
      return `Fetched ${ended.commit?.slice(0, 8)}: build ${ended.build.number}. \`berth builds logs ${ended.build.id}\` shows it.`;
    if (ended.status === "waiting")
      return problem === null ? "The fetch is under way." : "The fetch failed and is tried again.";
    return oneLine(ended.reason ?? "", 300);
  });
  if (problem !== null) throw new CliError("refused", "not_fetched", { message: oneLine(problem, 300) });
}

async function planNow(ctx: CliContext, slug: string): Promise<void> {
  const client = await ctx.client();
  const { ended, problem } = await fetchBranch(client, slug, false);
  if (ended.commit === null)
    throw new CliError("refused", "not_fetched", { message: oneLine(problem ?? "The fetch is still under way.", 300) });
  showPlan(ctx, await client.call("builds.plan", { params: { slug }, body: { ref: ended.commit } }));
}

/** Fetches the branch. The problem is that of a fetch that failed. */
async function fetchBranch(client: Client, slug: string, deploy: boolean) {
  const asked = await client.call("follow.fetch", { params: { slug }, body: { deploy } });
  const ended = await awaitDelivery(client, slug, asked);
  const problem = ended.status === "waiting" ? (await client.call("follow.get", { params: { slug } })).problem : null;
  return { ended, problem };
}

/** Waits until the fetch has ended, or has failed once. */
async function awaitDelivery(client: Client, slug: string, asked: Delivery): Promise<Delivery> {
  const params = { slug };
  const look = async () => {
    const { deliveries } = await client.call("follow.deliveries", { params });
    const found = deliveries.find((each) => each.id === asked.id && each.status !== "waiting");
    return found ?? ((await client.call("follow.get", { params })).problem === null ? undefined : asked);
  };
  return (await until(look, { timeoutMs: waitMs, atMostMs: 500 })) ?? asked;
}

const addUnfollow = actCommand({
  row: "follow.delete",
  usage: "unfollow",
  summary: "Stop following a repository; what is live stays",
  examples: ["berth unfollow", "berth unfollow -p shop --yes"],
  warning: ({ words: { slug } }) =>
    `This forgets the deploy key, the token and the webhook's secret of ${slug}. What is live stays.`,
  text: (_, _paint, { words: { slug } }) => `${slug} no longer follows a repository.`,
});
