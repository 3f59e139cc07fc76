import type { Command } from "commander";
import { addGroup } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { oneLine } from "../render/text.ts";
import { rowCommand } from "../row-commands.ts";
import { maintenanceText } from "./projects.ts";

export function addMaintenance(program: Command, ctx: CliContext): void {
  const maintenance = addGroup(program, "maintenance", "Show visitors a maintenance page, or stop showing it");
  rowCommand(maintenance, ctx, {
    row: "projects.get",
    usage: "show",
    summary: "Show whether visitors get the maintenance page",
    isDefault: true,
    examples: ["berth maintenance", "berth maintenance -p shop --json"],
    text: (project) => `The maintenance page of ${project.slug} is ${maintenanceText(project) ?? "off"}`,
  });
  rowCommand(maintenance, ctx, {
    row: "projects.maintenance",
    usage: "on",
    summary: "Answer every visitor with 503 and a page; the application, deploys and cron jobs go on behind it",
    examples: ["berth maintenance on", 'berth maintenance on --message "Back at 18:00 UTC"'],
    input: ({ message }) => ({ body: { on: true, ...(message === undefined ? {} : { message }) } }),
    text: ({ url, maintenance: page }) => {
      const message = page?.message ?? null;
      return `Visitors of ${url} get the maintenance page${message === null ? "." : `: ${oneLine(message)}`}`;
    },
    note: () => "`berth maintenance off` ends it.",
  }).option("-m, --message <text>", "what the page says, in one line");
  rowCommand(maintenance, ctx, {
    row: "projects.maintenance",
    usage: "off",
    summary: "Let visitors reach the application again",
    examples: ["berth maintenance off"],
    input: () => ({ body: { on: false } }),
    text: ({ url }) => `Visitors of ${url} reach the application again.`,
  });
}
