import { commandGroup, rowCommand } from "../command-tree.ts";
import { oneLine } from "../render/text.ts";
import { maintenanceText } from "./projects.ts";

export const addMaintenance = commandGroup({
  name: "maintenance",
  summary: "Show visitors a maintenance page, or stop showing it",
  commands: () => [
    rowCommand({
      row: "projects.get",
      usage: "show",
      summary: "Show whether visitors get the maintenance page",
      isDefault: true,
      examples: ["berth maintenance", "berth maintenance -p shop --json"],
      text: (project) => `The maintenance page of ${project.slug} is ${maintenanceText(project) ?? "off"}`,
    }),
    rowCommand({
      row: "projects.maintenance",
      usage: "on",
      summary: "Answer every visitor with 503 and a page; the application, deploys and cron jobs go on behind it",
      examples: ["berth maintenance on", 'berth maintenance on --message "Back at 18:00 UTC"'],
      input: ({ message }) => ({ body: { on: true, message } }),
      text: ({ url, maintenance: page }) => {
        const message = page?.message ?? null;
        return `Visitors of ${url} get the maintenance page${message === null ? "." : `: ${oneLine(message)}`}`;
      },
      note: () => "`berth maintenance off` ends it.",
      options: (command) => command.option("-m, --message <text>", "what the page says, in one line"),
    }),
    rowCommand({
      row: "projects.maintenance",
      usage: "off",
      summary: "Let visitors reach the application again",
      examples: ["berth maintenance off"],
      input: () => ({ body: { on: false } }),
      text: ({ url }) => `Visitors of ${url} reach the application again.`,
    }),
  ],
});
