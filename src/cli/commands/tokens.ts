import { Option, type Command } from "commander";
import { roles, type Role } from "../../contract/access.ts";
import type { Answer, Client } from "../../contract/client.ts";
import { addCommand, commandGroup, actCommand, listCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { wholeNumber } from "../input.ts";
import { oneLine, relativeTime } from "../render/text.ts";
import { oneNamed } from "../one-named.ts";

export const addTokens = commandGroup({
  name: "tokens",
  summary: "List, create and revoke API tokens",
  commands: () => [addList, addCreateToken, addRevoke],
});

type Token = Answer<"tokens.list">["api_tokens"][number];

const addList = listCommand({
  row: "tokens.list",
  usage: "list",
  summary: "List the organization's tokens and connected programs",
  isDefault: true,
  examples: ["berth tokens", "berth tokens list --json"],
  items: (answer) => answer.api_tokens,
  columns: {
    NAME: (token) => oneLine(token.name, 40),
    KIND: ({ kind, person }) => (person === null ? kind : `${kind} of ${oneLine(person, 20)}`),
    ROLE: (token) => (token.platform_admin ? "platform admin" : token.role),
    PROJECTS: (token) => (token.projects === null ? "all" : oneLine(token.projects.join(", ") || "none", 40)),
    SCOPES: (token) => `${token.scopes.length}${token.approval_mode ? ", with approval" : ""}`,
    USED: (token) => relativeTime(token.last_used_at),
    EXPIRES: (token) => relativeTime(token.expires_at),
    PREFIX: (token) => token.prefix,
    ID: (token) => token.id,
  },
  empty: "There are no tokens.",
});

interface CreateOptions {
  role: Role;
  scope?: string[];
  expiresInDays: string;
  approvalMode?: boolean;
}

function addCreateToken(tokens: Command, ctx: CliContext): void {
  const examples = [
    "berth tokens create ci --scope deployments:write --scope deployments:read > ci-token",
    "berth tokens create agent --project shop,blog --approval-mode",
    "berth tokens create colleague --role owner --expires-in-days 30",
  ];
  addCommand(tokens, {
    usage: "create <name>",
    summary:
      "Create a token with a part of your own rights, with --project limited to these projects; its text is shown only once",
    examples,
  })
    .addOption(new Option("--role <role>", "what it may do").choices(roles).default("member"))
    .option("--scope <scope...>", "only these scopes; `berth capabilities` lists them")
    .option("--expires-in-days <days>", "1 to 365", "90")
    .option("--approval-mode", "its deletions, restores, one-off commands and new tokens wait for a person's approval")
    .action(async (name: string, options: CreateOptions) => {
      const token = await (
        await ctx.client()
      ).call("tokens.create", { body: bodyOf(name, options, ctx.options.project) });
      ctx.output.note(
        () =>
          `Created the ${token.role} token "${oneLine(token.name)}"${reachOf(token)}, valid until ${token.expires_at ?? "it is revoked"}. Its text is shown only this once:`,
      );
      ctx.output.result(token, () => token.token ?? "");
    });
}

function bodyOf(name: string, options: CreateOptions, projects: string | undefined) {
  return {
    name,
    role: options.role,
    expires_in_days: wholeNumber(options.expiresInDays, "--expires-in-days", { least: 1, most: 365 }),
    scopes: options.scope,
    projects: projects?.split(","),
    approval_mode: options.approvalMode,
  };
}

function reachOf({ projects }: Pick<Token, "projects">): string {
  return projects === null
    ? ""
    : ` for ${projects.length === 1 ? "the project" : "the projects"} ${projects.join(", ")}`;
}

const addRevoke = actCommand({
  row: "tokens.delete",
  usage: "revoke <token>",
  summary: "Revoke a token, named by id, name or prefix",
  examples: ["berth tokens revoke ci", "berth tokens revoke tok_06bq… --yes"],
  find: findToken,
  warning: ({ thing }) => `This revokes the token "${oneLine(thing.name)}"; it stops working at once.`,
  text: (_, _paint, { thing }) => `Revoked "${oneLine(thing.name)}".`,
});

async function findToken(client: Client, given: string) {
  const { api_tokens } = await client.call("tokens.list");
  const names = ({ id, name, prefix }: Token) => [id, name, prefix];
  return oneNamed(api_tokens, given, { noun: "token", names, list: "berth tokens", secret: true });
}
