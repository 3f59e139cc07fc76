import type { Command } from "commander";
import { addCommand, commandGroup } from "../command-tree.ts";
import { readConfig, writeConfig } from "../config-file.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { table } from "../render/text.ts";

/** Adds `berth contexts`: the platforms that the user is logged in to. Tokens are never shown. */
export const addContexts = commandGroup({
  name: "contexts",
  summary: "List the platforms you are logged in to, and choose one",
  commands: () => [addList, addUse],
});

function addList(contexts: Command, { environment: { configFile }, output }: CliContext): void {
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
    output.result({ contexts: known }, (paint) => {
      const rows = known.map(({ name, url, current }) => [current ? "*" : "", name, url]);
      return table(paint, ["", "NAME", "URL"], rows, "You are not logged in anywhere.");
    });
  });
}

function addUse(contexts: Command, { environment: { configFile }, output }: CliContext): void {
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
    output.note(() => `The current context is "${name}" (${chosen.url}).`);
  });
}
