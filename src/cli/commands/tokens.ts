import { Option, type Command } from "commander";
import { roles, type Role } from "../../contract/access.ts";
import type { Answer, Client } from "../../contract/client.ts";
import { addCommand, addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { wholeNumber } from "../input.ts";
import { confirm } from "../prompts.ts";
import type { Paint } from "../render/paint.ts";
import { table } from "../render/table.ts";
import { oneLine, relativeTime } from "../render/text.ts";

/** `berth tokens`: the organization's API tokens. */
export function addTokens(program: Command, ctx: CliContext): void {
  const tokens = addGroup(program, "tokens", "List, create and revoke API tokens");
  addList(tokens, ctx);
  addCreateToken(tokens, ctx);
  addRevoke(tokens, ctx);
}

type Token = Answer<"tokens.list">["api_tokens"][number];

function addList(tokens: Command, ctx: CliContext): void {
  addCommand(tokens, {
    usage: "list",
    summary: "List the organization's tokens",
    isDefault: true,
    examples: ["berth tokens", "berth tokens list --json"],
  }).action(async () => {
    const document = await (await ctx.client()).call("tokens.list");
    ctx.output.result(document, (paint) => listText(paint, document.api_tokens));
  });
}

function listText(paint: Paint, tokens: readonly Token[]): string {
  const rows = tokens.map((token) => [
    oneLine(token.name, 40),
    token.platform_admin ? "platform admin" : token.role,
    `${token.scopes.length}${token.approval_mode ? ", with approval" : ""}`,
    relativeTime(token.last_used_at),
    relativeTime(token.expires_at),
    token.prefix,
    token.id,
  ]);
  return table(paint, ["NAME", "ROLE", "SCOPES", "USED", "EXPIRES", "PREFIX", "ID"], rows, "There are no tokens.");
}

interface CreateOptions {
  role: Role;
  scope?: string[];
  expiresInDays: string;
  approvalMode?: boolean;
}

function addCreateToken(tokens: Command, ctx: CliContext): void {
  const examples = [
    "berth tokens create ci --scope deployments:write --scope deployments:read > ci-token",
    "berth tokens create colleague --role owner --expires-in-days 30",
  ];
  addCommand(tokens, {
    usage: "create <name>",
    summary: "Create a token with a part of your own rights; its text is shown only once",
    examples,
  })
    .addOption(new Option("--role <role>", "what it may do").choices(roles).default("member"))
    .option("--scope <scope...>", "only these scopes; `berth capabilities` lists them")
    .option("--expires-in-days <days>", "1 to 365", "90")
    .option("--approval-mode", "its deletions wait for a human")
    .action(async (name: string, options: CreateOptions) => {
      const token = await (await ctx.client()).call("tokens.create", { body: bodyOf(name, options) });
      ctx.output.note(
        () =>
          `Created "${oneLine(token.name)}", a ${token.role} until ${token.expires_at ?? "revoked"}. This is the only time its text is shown:`,
      );
      ctx.output.result(token, () => token.token ?? "");
    });
}

function bodyOf(name: string, options: CreateOptions) {
  return {
    name,
    role: options.role,
    expires_in_days: wholeNumber(options.expiresInDays, "--expires-in-days", { least: 1, most: 365 }),
    ...(options.scope === undefined ? {} : { scopes: options.scope }),
    ...(options.approvalMode === undefined ? {} : { approval_mode: options.approvalMode }),
  };
}

function addRevoke(tokens: Command, ctx: CliContext): void {
  addCommand(tokens, {
    usage: "revoke <token>",
    summary: "Revoke a token, named by id, name or prefix",
    examples: ["berth tokens revoke ci", "berth tokens revoke tok_06bq… --yes"],
  })
    .option("-y, --yes", "don't ask")
    .action(async (given: string, options: { yes?: boolean }) => {
      const client = await ctx.client();
      const token = await findToken(client, given);
      await confirm(ctx, `This revokes the token "${oneLine(token.name)}"; it stops working at once.`, {
        name: oneLine(token.name),
        yes: options.yes,
      });
      await client.call("tokens.delete", { params: { id: token.id } });
      ctx.output.note(() => `Revoked "${oneLine(token.name)}".`);
    });
}

// The text that was given may be a token itself, so it is not repeated.
async function findToken(client: Client, given: string): Promise<Token> {
  const { api_tokens } = await client.call("tokens.list");
  const found = api_tokens.filter((token) => [token.id, token.name, token.prefix].includes(given));
  if (found.length > 1)
    throw new CliError("conflict", "ambiguous", {
      message: "Several tokens are called that.",
      hint: "Use the id: `berth tokens` lists them.",
    });
  if (found[0] === undefined)
    throw new CliError("notFound", "not_found", {
      message: "There is no such token.",
      hint: "`berth tokens` lists them.",
    });
  return found[0];
}
