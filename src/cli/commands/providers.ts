import { Option, type Command } from "commander";
import type { Body } from "../../contract/routes.ts";
import { addCommand, commandGroup, actCommand, listCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { askSecret } from "../prompts.ts";
import { oneLine, relativeTime } from "../render/text.ts";

export const addProviders = commandGroup({
  name: "providers",
  summary: "List, set and remove identity providers for people's sign-in (for the platform's operator)",
  commands: () => [
    listCommand({
      row: "providers.list",
      usage: "list",
      summary: "List the providers with which people sign in",
      isDefault: true,
      examples: ["berth providers", "berth providers list --json"],
      items: (answer) => answer.providers,
      columns: {
        ID: (provider) => provider.id,
        NAME: (provider) => oneLine(provider.name, 40),
        ISSUER: (provider) => oneLine(provider.issuer, 60),
        CALLBACK: (provider) => provider.callback_url,
        CHANGED: (provider) => relativeTime(provider.updated_at),
      },
      empty: "People sign in with passkeys alone: `berth providers set --help` shows how to add a provider.",
    }),
    addSet,
    actCommand({
      row: "providers.delete",
      usage: "remove <id>",
      summary: "Remove a provider; nobody signs in with it any more",
      examples: ["berth providers remove google", "berth providers remove google --yes"],
      warning: ({ words: { id = "" } }) =>
        `This removes the provider ${id}: who has no passkey then needs an invitation.`,
      text: (_, _paint, { words }) => `Removed ${words.id}.`,
    }),
  ],
});

interface SetOptions {
  readonly kind: Body<"providers.set">["kind"];
  readonly issuer?: string;
  readonly clientId: string;
  readonly name?: string;
  readonly secretStdin?: boolean;
}

function addSet(providers: Command, ctx: CliContext): void {
  addCommand(providers, {
    usage: "set <id>",
    summary: "Add a provider, or replace it; its short name is part of the callback address",
    examples: [
      "berth providers set google --issuer https://accounts.google.com --client-id ID --name Google",
      "berth providers set github --kind github --client-id ID --secret-stdin < secret.txt",
    ],
  })
    .addOption(new Option("--kind <kind>", "the kind of provider").choices(["oidc", "github"]).default("oidc"))
    .option("--issuer <url>", "the issuer's address; for GitHub only a server of your own")
    .requiredOption("--client-id <id>", "what the provider calls Berth")
    .option("--name <name>", "on the button of the sign-in page; default: the short name")
    .option("--secret-stdin", "read the client secret from stdin")
    .action(async (id: string, options: SetOptions) => {
      const { kind, issuer, clientId: client_id, name = id } = options;
      const from = { stdin: options.secretStdin === true, option: "--secret-stdin" };
      const client_secret = await askSecret(ctx, `Client secret of ${id}`, from);
      const body = { kind, name, client_id, client_secret, issuer };
      const set = await (await ctx.client()).call("providers.set", { params: { id }, body });
      ctx.output.note(() => `Register this callback address at the provider: ${set.callback_url}`);
      ctx.output.result(set, () => `People who were invited can sign in with ${oneLine(set.name)}.`);
    });
}
