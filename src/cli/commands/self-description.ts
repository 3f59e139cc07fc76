import type { Command } from "commander";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { facts, table } from "../render/text.ts";

/** Adds `berth capabilities` and `berth version`: the platform's description of itself, without a login. */
export function addSelfDescription(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "capabilities",
    summary: "List the platform's routes, scopes and error codes",
    examples: ["berth capabilities", "berth capabilities --json"],
  }).action(async () => {
    const client = await ctx.client({ anonymous: true });
    const document = await client.call("self-description.capabilities");
    ctx.output.result(document, (paint) => {
      const rows = document.routes.map((row) => [
        row.name,
        row.method,
        row.path,
        row.access,
        row.scope ?? "",
        row.summary,
      ]);
      const codes = document.error_codes.map((error) => [error.code, String(error.status), error.meaning]);
      return [
        facts(paint, [
          ["platform", `${client.baseUrl} (Berth ${document.version})`],
          ["scopes", document.scopes.join(" ")],
        ]),
        table(paint, ["ROUTE", "METHOD", "PATH", "ACCESS", "SCOPE", "SUMMARY"], rows, ""),
        table(paint, ["ERROR CODE", "STATUS", "MEANING"], codes, ""),
      ].join("\n\n");
    });
  });
  addCommand(program, {
    usage: "version",
    summary: "Show the version of this tool",
    examples: ["berth version"],
  }).action(() => {
    const version = program.version() ?? "";
    ctx.output.result({ version }, () => version);
  });
}
