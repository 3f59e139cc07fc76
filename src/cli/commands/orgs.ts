import type { Command } from "commander";
import { addCommand, commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { ifGiven, wholeNumber } from "../input.ts";
import { paintStatus, oneLine, relativeTime } from "../render/text.ts";

export const addOrgs = commandGroup({
  name: "orgs",
  summary: "List, create, change, suspend and enable organizations (for the platform's operator)",
  commands: () => [addList, addCreateOrg, addSet, addDisable, addEnable, addRescue],
});

const addList = listCommand({
  row: "orgs.list",
  usage: "list",
  summary: "List all organizations",
  isDefault: true,
  examples: ["berth orgs", "berth orgs list --json"],
  items: (answer) => answer.orgs,
  columns: {
    SLUG: (org) => org.slug,
    NAME: (org) => oneLine(org.name, 40),
    STATE: (org, paint) => paintStatus(paint, org.state),
    PROJECTS: (org) => `${org.projects} of ${org.max_projects}`,
    CREATED: (org) => relativeTime(org.created_at),
  },
  empty: "There are no organizations.",
});

interface CreateOptions {
  readonly name?: string;
  readonly maxProjects?: string;
}

function addCreateOrg(orgs: Command, ctx: CliContext): void {
  addCommand(orgs, {
    usage: "create <slug>",
    summary: "Create an organization; the text of its owner token is shown only once",
    examples: ["berth orgs create acme > acme-owner-token", 'berth orgs create acme --name "Acme" --max-projects 50'],
  })
    .option("--name <name>", "a display name; by default the slug")
    .option("--max-projects <count>", "how many projects it may have; by default 10")
    .action(async (slug: string, options: CreateOptions) => {
      const body = { slug, name: options.name ?? slug, max_projects: limitOf(options) };
      const made = await (await ctx.client()).call("orgs.create", { body });
      ctx.output.note(() => `Created the organization ${made.slug}. Its owner token is shown only this once:`);
      ctx.output.result(made, () => made.owner_token ?? "");
    });
}

function addSet(orgs: Command, ctx: CliContext): void {
  addCommand(orgs, {
    usage: "set <slug>",
    summary: "Change an organization's name and how many projects it may have",
    examples: ["berth orgs set acme --max-projects 50", 'berth orgs set acme --name "Acme Ltd"'],
  })
    .option("--name <name>", "a display name")
    .option("--max-projects <count>", "how many projects it may have")
    .action(async (slug: string, options: CreateOptions) => {
      const { name, maxProjects } = options;
      if (name === undefined && maxProjects === undefined)
        throw usageError("Nothing to change: give --name or --max-projects.");
      const body = { name, max_projects: limitOf(options) };
      const org = await (await ctx.client()).call("orgs.update", { params: { slug }, body });
      ctx.output.result(org, () => `${org.slug} ("${oneLine(org.name)}") may have ${org.max_projects} projects.`);
    });
}

const limitOf = ({ maxProjects }: CreateOptions) =>
  ifGiven(maxProjects, (text) => wholeNumber(text, "--max-projects", { least: 0, most: 100_000 }));

const addDisable = actCommand({
  row: "orgs.disable",
  usage: "disable <slug>",
  summary: "Suspend an organization: tokens, applications and cron jobs stop; nothing is deleted",
  examples: ["berth orgs disable acme", "berth orgs disable acme --yes"],
  warning: ({ words: { slug = "" } }) => `This stops every application of ${oneLine(slug, 40)} and refuses its tokens.`,
  text: ({ slug }) => `${slug} is suspended. \`berth orgs enable ${slug}\` brings it back.`,
});

const addEnable = rowCommand({
  row: "orgs.enable",
  usage: "enable <slug>",
  summary: "Bring a suspended organization back with the deployments it had",
  examples: ["berth orgs enable acme"],
  text: ({ slug }) => `${slug} is active.`,
});

const addRescue = actCommand({
  row: "orgs.rescue",
  usage: "rescue <slug>",
  summary: "Create an owner token for an organization that lost its own; its text is shown only once",
  examples: ["berth orgs rescue acme > acme-owner-token"],
  warning: ({ words: { slug = "" } }) => `This creates a token that may do everything in ${oneLine(slug, 40)}.`,
  text: ({ owner_token }) => owner_token ?? "",
  note: () => "Hand it to the organization's owner: it is shown only this once.",
});
