import type { Command } from "commander";
import { addCommand, addGroup } from "../command-tree.ts";
import { readConfig, writeConfig } from "../config-file.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { table } from "../render/table.ts";

/** Adds `berth contexts`: the platforms that the user is logged in to. Tokens are never shown. */
export function addContexts(program: Command, ctx: CliContext): void {
  const contexts = addGroup(program, "contexts", "List the platforms you are logged in to, and choose one");
  const { configFile } = ctx.environment;
  addCommand(contexts, {
    usage: "list",
    summary: "List the contexts",
    isDefault: true,
    examples: ["berth contexts"],
  }).action(async () => {
    const config = await readConfig(configFile);
    const known = Object.entries(config.contexts).map(([name, { url }]) => ({
      name,
      url,
      current: name === config.current,
    }));
    ctx.output.result({ contexts: known }, (paint) => {
      const rows = known.map(({ name, url, current }) => [current ? "*" : "", name, url]);
      return table(paint, ["", "NAME", "URL"], rows, "You are not logged in anywhere.");
    });
  });
  addCommand(contexts, {
    usage: "use <name>",
    summary: "Make a context the current one",
    examples: ["berth contexts use work"],
  }).action(async (name: string) => {
    const config = await readConfig(configFile);
    const chosen = config.contexts[name];
    if (chosen === undefined)
      throw new CliError("notFound", "not_found", {
        message: `There is no context "${name}".`,
        hint: "`berth contexts` lists them.",
      });
    await writeConfig(configFile, { ...config, current: name });
    ctx.output.note(() => `The current context is "${name}" (${chosen.url}).`);
  });
}
