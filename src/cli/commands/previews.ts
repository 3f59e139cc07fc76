import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand, addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { oneNamed } from "../one-named.ts";
import { paintStatus } from "../render/paint.ts";
import { oneLine, relativeTime } from "../render/text.ts";
import { actCommand, listCommand, rowCommand } from "../row-commands.ts";

/** Adds `berth preview`: the branches of a project that have a URL of their own. */
export function addPreviews(program: Command, ctx: CliContext): void {
  const previews = addGroup(program, "preview", "Give branches a URL and data of their own");
  addList(previews, ctx);
  addCreate(previews, ctx);
  addOpen(previews, ctx);
  addDelete(previews, ctx);
}

type Preview = Answer<"previews.list">["previews"][number];

function addList(previews: Command, ctx: CliContext): void {
  listCommand(previews, ctx, {
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
      ENDS: ({ expires_at }) => relativeTime(expires_at),
    },
    empty: "There are no previews: `berth projects settings --previews '*'`, then push a branch.",
  });
}

function addCreate(previews: Command, ctx: CliContext): void {
  rowCommand(previews, ctx, {
    row: "previews.create",
    usage: "create <branch>",
    summary: "Build a branch that was pushed before into its preview",
    examples: ["berth preview create feature/search"],
    input: (_, { branch = "" }) => ({ body: { branch } }),
    progress: ({ words }) => `Preparing the preview of ${words["branch"]}`,
    text: ({ slug, url }) => `${url} serves it once it is built: \`berth logs --source build -p ${slug}\``,
  });
}

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

function addDelete(previews: Command, ctx: CliContext): void {
  actCommand(previews, ctx, {
    row: "previews.delete",
    usage: "delete <preview>",
    summary: "Delete a preview, named by its branch, with all its data",
    examples: ["berth preview delete feature/search"],
    question: ({ words: { preview = "" } }) => ({
      what: `This deletes the preview of ${oneLine(preview)} with its database and files; no backup is kept.`,
      name: preview,
    }),
    text: (_, _paint, { words: { preview = "" } }) => `The preview of ${oneLine(preview)} is being removed.`,
  });
}
