import type { Answer, Client } from "../../contract/client.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { withProgress } from "../render/progress.ts";
import { listCommand } from "../command-tree.ts";
import { followToTheEnd } from "./deployments.ts";

export const addTemplates = listCommand({
  row: "templates.list",
  usage: "templates",
  summary: "List small applications to begin with",
  examples: ["berth templates", "berth create demo --template node"],
  items: (answer) => answer.templates,
  columns: {
    NAME: (template) => template.name,
    TITLE: (template) => template.title,
    DATABASE: (template) => (template.has_database ? "yes" : ""),
    SUMMARY: (template) => template.summary,
  },
  empty: "This platform has no templates.",
});

export type Template = Answer<"templates.list">["templates"][number];

export async function findTemplate(client: Client, name: string): Promise<Template> {
  const { templates } = await client.call("templates.list");
  const found = templates.find((each) => each.name === name);
  if (found !== undefined) return found;
  throw usageError(`There is no template ${name}.`, `There are ${templates.map((each) => each.name).join(", ")}.`);
}

/** Deploys a template in a new project, with a database if it needs one, and follows that to its end. */
export async function deployTemplate(ctx: CliContext, client: Client, slug: string, template: Template) {
  const params = { slug };
  if (template.has_database)
    await withProgress(ctx, "Creating the database", () => client.call("database.create", { params, body: {} }));
  const body = { files: [...template.files], message: `Template ${template.name}` };
  const { build_id: buildId } = await client.call("builds.change", { params, body });
  ctx.goesOn = `The deployment goes on. Watch it with \`berth builds log ${buildId} -f\`.`;
  return followToTheEnd(ctx, client, { slug, buildId });
}
