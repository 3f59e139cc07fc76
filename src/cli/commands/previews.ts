import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand, commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { currentProject, openProject, type CliContext } from "../context.ts";
import { oneNamed } from "../one-named.ts";
import { paintStatus, oneLine, relativeTime, terminalText } from "../render/text.ts";
import { followToTheEnd } from "./deployments.ts";

export const addPreviews = commandGroup({
  name: "preview",
  summary: "Give branches a URL and data of their own",
  commands: () => [addList, addCreate, addOpen, addPin, addComment, addPromote, addDelete],
});

type Preview = Answer<"previews.list">["previews"][number];

const addList = listCommand({
  row: "previews.list",
  usage: "list",
  summary: "List the previews; each is a project too, for -p",
  isDefault: true,
  examples: ["berth preview", "berth preview list -p shop --json"],
  items: (answer) => answer.previews,
  columns: {
    BRANCH: ({ branch }) => oneLine(branch, 60),
    STATE: ({ state }, paint) => paintStatus(paint, state),
    URL: ({ url }) => url,
    PROJECT: ({ slug }) => slug,
    CREATED: ({ created_at }) => relativeTime(created_at),
    ENDS: ({ expires_at }) => (expires_at === null ? "pinned" : relativeTime(expires_at)),
  },
  empty: "There are no previews: `berth projects settings --previews '*'`, then push a branch.",
});

const addCreate = rowCommand({
  row: "previews.create",
  usage: "create <branch>",
  summary: "Build a branch that was pushed before into its preview",
  examples: ["berth preview create feature/search", "berth preview create fix --from-live"],
  input: ({ fromLive }, { branch = "" }) => ({ body: { branch, ...(fromLive === true && { from_live: true }) } }),
  progress: ({ words }) => `Preparing the preview of ${words["branch"]}`,
  text: ({ slug, url }) => `${url} serves it once it is built: \`berth logs --source build -p ${slug}\``,
  options: (command) =>
    command.option("--from-live", "make the branch at the commit that serves, if the repository has none of that name"),
});

function addOpen(previews: Command, ctx: CliContext): void {
  addCommand(previews, {
    usage: "open <branch>",
    summary: "Print a preview's URL",
    examples: ["berth preview open feature/search"],
  }).action(async (given: string) => {
    const slug = await currentProject(ctx);
    const { previews: all } = await (await ctx.client()).call("previews.list", { params: { slug } });
    const found = oneNamed<Preview>(all, given, {
      noun: "preview",
      names: ({ branch, slug: own }) => [branch, own],
      list: "berth preview list",
    });
    ctx.output.result(found, () => found.url);
    if (found.state !== "live") ctx.output.note(() => `It is ${found.state}.`);
  });
}

function addPin(previews: Command, ctx: CliContext): void {
  rowCommand({
    row: "previews.pin",
    usage: "pin <preview>",
    summary: "Let a preview stay, for example as staging, until it is deleted",
    examples: ["berth preview pin staging"],
    text: ({ url }, _paint, { words: { preview = "" } }) =>
      `The preview of ${oneLine(preview)} stays at ${url}, also without its branch.`,
  })(previews, ctx);
  rowCommand({
    row: "previews.unpin",
    usage: "unpin <preview>",
    summary: "Let a preview end as others do, with its data",
    examples: ["berth preview unpin staging"],
    text: ({ expires_at }, _paint, { words: { preview = "" } }) =>
      `The preview of ${oneLine(preview)} ends ${expires_at === null ? "" : relativeTime(expires_at)}.`,
  })(previews, ctx);
}

const addComment = rowCommand({
  row: "previews.comment",
  usage: "comment <preview>",
  summary: "Print a comment about a preview for its pull request, and say whether Berth posted it",
  examples: ["berth preview comment feature/search", "berth preview comment feature/search --json"],
  text: ({ text, request, posted, problem }) => {
    const at = posted && request !== null ? `Posted: ${oneLine(request.url, 300)}` : "Not posted: copy it from here.";
    return [terminalText(text, { colours: false }), at, ...(problem === null ? [] : [oneLine(problem, 300)])].join(
      "\n",
    );
  },
});

interface PromoteOptions {
  readonly wait: boolean;
  readonly commit?: string;
}

function addPromote(previews: Command, ctx: CliContext): void {
  addCommand(previews, {
    usage: "promote <preview>",
    summary: "Deploy the very image that runs in a preview to its project",
    examples: ["berth preview promote staging", "berth preview promote staging --no-wait --json"],
  })
    .option("--no-wait", "don't wait for the outcome")
    .option("--commit <commit>", "only if the preview serves this commit, the one that you looked at")
    .action(async (preview: string, { wait, commit: expected_commit }: PromoteOptions) => {
      const { slug, client } = await openProject(ctx);
      const body = { expected_commit };
      const { build_id, commit } = await client.call("previews.promote", { params: { slug, preview }, body });
      const log = `berth builds log ${build_id}`;
      if (!wait)
        return ctx.output.result(
          { build_id, commit },
          () => `Deploying ${commit.slice(0, 8)} in the background: \`${log}\``,
        );
      ctx.goesOn = `The deployment goes on. Watch it with \`${log} -f\`, or end it with \`berth cancel ${build_id}\`.`;
      const deployment = await followToTheEnd(ctx, client, { slug, buildId: build_id });
      return ctx.output.result(
        deployment,
        (paint) => `${paint.green("Live:")} deployment #${deployment.number} of ${slug}`,
      );
    });
}

const addDelete = actCommand({
  row: "previews.delete",
  usage: "delete <preview>",
  summary: "Delete a preview, named by its branch, with all its data",
  examples: ["berth preview delete feature/search"],
  warning: ({ words: { preview = "" } }) =>
    `This deletes the preview of ${oneLine(preview)} with its database and files; no backup is kept.`,
  text: (_, _paint, { words: { preview = "" } }) => `The preview of ${oneLine(preview)} is being removed.`,
});
