import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { addCommand, addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { wholeNumber } from "../input.ts";
import { confirm } from "../prompts.ts";
import { paintStatus } from "../render/paint.ts";
import { table } from "../render/table.ts";
import { oneLine, relativeTime } from "../render/text.ts";

/** `berth orgs`: the platform's organizations, for its operator. */
export function addOrgs(program: Command, ctx: CliContext): void {
  const orgs = addGroup(program, "orgs", "List, create, suspend and enable organizations (platform admins only)");
  addList(orgs, ctx);
  addCreateOrg(orgs, ctx);
  addDisable(orgs, ctx);
  addEnable(orgs, ctx);
}

type Organization = Answer<"orgs.enable">;

function addList(orgs: Command, ctx: CliContext): void {
  addCommand(orgs, {
    usage: "list",
    summary: "List all organizations",
    isDefault: true,
    examples: ["berth orgs", "berth orgs list --json"],
  }).action(async () => {
    const document = await (await ctx.client()).call("orgs.list");
    ctx.output.result(document, (paint) => {
      const rows = document.orgs.map((org: Organization) => [
        org.slug,
        oneLine(org.name, 40),
        paintStatus(paint, org.state),
        `${org.projects} of ${org.max_projects}`,
        relativeTime(org.created_at),
      ]);
      return table(paint, ["SLUG", "NAME", "STATE", "PROJECTS", "CREATED"], rows, "There are no organizations.");
    });
  });
}

interface CreateOptions {
  readonly name?: string;
  readonly maxProjects?: string;
}

function addCreateOrg(orgs: Command, ctx: CliContext): void {
  addCommand(orgs, {
    usage: "create <slug>",
    summary: "Make an organization; the text of its owner token is shown this once",
    examples: ["berth orgs create acme > acme-owner-token", 'berth orgs create acme --name "Acme" --max-projects 50'],
  })
    .option("--name <name>", "a name for people; the slug if left out")
    .option("--max-projects <count>", "how many projects it may have; 10 if left out")
    .action(async (slug: string, options: CreateOptions) => {
      const limit = options.maxProjects;
      const body = {
        slug,
        name: options.name ?? slug,
        ...(limit === undefined
          ? {}
          : { max_projects: wholeNumber(limit, "--max-projects", { least: 0, most: 100_000 }) }),
      };
      const made = await (await ctx.client()).call("orgs.create", { body });
      ctx.output.note(() => `Made the organization ${made.slug}. This is the only time its owner token is shown:`);
      ctx.output.result(made, () => made.owner_token ?? "");
    });
}

function addDisable(orgs: Command, ctx: CliContext): void {
  addCommand(orgs, {
    usage: "disable <slug>",
    summary: "Suspend an organization: tokens, applications and cron jobs stop; nothing is deleted",
    examples: ["berth orgs disable acme", "berth orgs disable acme --yes"],
  })
    .option("-y, --yes", "don't ask")
    .action(async (slug: string, options: { yes?: boolean }) => {
      const client = await ctx.client();
      const said = `This stops every application of ${oneLine(slug, 40)} and refuses its tokens.`;
      await confirm(ctx, said, { name: slug, yes: options.yes });
      const org = await client.call("orgs.disable", { params: { slug } });
      ctx.output.result(org, () => `${org.slug} is suspended. \`berth orgs enable ${org.slug}\` brings it back.`);
    });
}

function addEnable(orgs: Command, ctx: CliContext): void {
  addCommand(orgs, {
    usage: "enable <slug>",
    summary: "Bring a suspended organization back with the deployments it had",
    examples: ["berth orgs enable acme"],
  }).action(async (slug: string) => {
    const org = await (await ctx.client()).call("orgs.enable", { params: { slug } });
    ctx.output.result(org, () => `${org.slug} is active.`);
  });
}
