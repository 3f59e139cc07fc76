import { resolve } from "node:path";
import type { Command } from "commander";
import type { Client } from "../../contract/client.ts";
import { addCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { repositoryRoot } from "../git.ts";
import { withProgress } from "../render/progress.ts";
import { showPlan } from "../show-plan.ts";
import { archiveOf, sourceFiles } from "../source-files.ts";

/** Adds `berth plan`: what a deploy would do, without doing it. */
export function addPlan(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "plan [ref]",
    summary: "Show what a deploy of this folder, or of a pushed branch or commit, would do",
    examples: [
      "berth plan                             # the files here, committed or not",
      "berth plan main -p demo                # a branch of the project's repository",
      "berth plan --dir services/api --json",
      "git push -o plan berth main            # the same for a commit, before it is pushed",
    ],
  })
    .option("--dir <folder>", "plan this folder's files; by default the whole repository around the current folder")
    .action(async (ref: string | undefined, { dir }: { dir?: string }) => {
      if (ref !== undefined && dir !== undefined) throw usageError("Give either a branch or commit, or --dir.");
      const { slug, client } = await openProject(ctx);
      const plan = await (ref === undefined
        ? planFolder(ctx, client, { slug, dir })
        : client.call("builds.plan", { params: { slug }, body: { ref }, signal: ctx.signal }));
      showPlan(ctx, plan);
    });
}

async function planFolder(ctx: CliContext, client: Client, { slug, dir }: { slug: string; dir: string | undefined }) {
  const { environment } = ctx;
  const folder = dir === undefined ? await repositoryRoot(environment) : resolve(environment.cwd, dir);
  const files = await sourceFiles(environment, folder);
  const upload = () =>
    client.call("builds.plan-upload", { params: { slug }, signal: ctx.signal, upload: archiveOf(folder, files) });
  return withProgress(ctx, `Sending ${files.length} ${files.length === 1 ? "file" : "files"}`, upload);
}
