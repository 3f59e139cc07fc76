import type { Command } from "commander";
import { addCommand, commandGroup, actCommand, listCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { askSecret } from "../prompts.ts";
import { oneLine, relativeTime } from "../render/text.ts";

export const addRegistries = commandGroup({
  name: "registries",
  summary: "List, add and remove logins for private image registries",
  commands: () => [addList, addAdd, addRemove],
});

const addList = listCommand({
  row: "registries.list",
  usage: "list",
  summary: "List the registries that builds log in to",
  isDefault: true,
  examples: ["berth registries", "berth registries list --json"],
  items: (answer) => answer.registries,
  columns: {
    HOST: (registry) => registry.host,
    USER: (registry) => oneLine(registry.username),
    CHANGED: (registry) => relativeTime(registry.updated_at),
  },
  empty: "Builds log in to no registry: `berth registries add ghcr.io --username ada` adds one.",
});

function addAdd(registries: Command, ctx: CliContext): void {
  const examples = [
    "berth registries add ghcr.io --username ada --password-stdin < token.txt",
    "berth registries add docker.io --username ada        # asks for the password",
  ];
  addCommand(registries, {
    usage: "add <host>",
    summary: "Store the user and password for a registry, or replace them",
    examples,
  })
    .requiredOption("-u, --username <name>", "the user of the registry")
    .option("--password-stdin", "read the password or access token from stdin")
    .action(async (given: string, options: { username: string; passwordStdin?: boolean }) => {
      const host = given.replace(/^https:\/\//, "").replace(/\/+$/, "");
      const from = { stdin: options.passwordStdin === true, option: "--password-stdin" };
      const password = await askSecret(ctx, `Password or access token for ${host}`, from);
      const { username } = options;
      const client = await ctx.client();
      const registry = await client.call("registries.set", { params: { host }, body: { username, password } });
      ctx.output.result(
        registry,
        () =>
          `Builds log in to ${registry.host} as ${oneLine(registry.username)} from now on.${registry.login === "untried" ? " The registry did not answer, so the password is untried." : ""}`,
      );
    });
}

const addRemove = actCommand({
  row: "registries.delete",
  usage: "remove <host>",
  summary: "Forget the user and password for a registry",
  examples: ["berth registries remove ghcr.io", "berth registries remove ghcr.io --yes"],
  warning: ({ words: { host = "" } }) =>
    `This forgets the login for ${host}: builds can pull no private image from there any more.`,
  text: (_, _paint, { words }) => `Removed ${words.host}.`,
});
