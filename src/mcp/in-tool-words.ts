import type { NextCall } from "../contract/errors.ts";
import type { RouteName } from "../contract/routes.ts";
import { route } from "../contract/routes.ts";
import { changes } from "../contract/table.ts";
import { groups } from "./groups.ts";

// The platform's hints name commands and routes, which a model with only tools can't use.
const rowsOfCommands: Readonly<Record<string, RouteName>> = {
  "env set": "env.set",
  preview: "previews.list",
  "preview list": "previews.list",
  "preview create": "previews.create",
  "preview delete": "previews.delete",
  "preview pin": "previews.pin",
  "preview unpin": "previews.unpin",
  "preview promote": "previews.promote",
  "preview comment": "previews.comment",
  "db branch": "branches.list",
  "db branch list": "branches.list",
  "db branch delete": "branches.delete",
  "db create": "database.create",
  "db psql": "data.query",
  db: "database.get",
  link: "projects.get",
  clone: "projects.get",
  create: "projects.create",
  "projects settings": "projects.settings",
  "projects delete": "projects.delete",
  "projects undelete": "projects.undelete",
  domains: "domains.list",
  "domains check": "domains.list",
  "domains add": "domains.attach",
  "backups create": "backups.create",
  backups: "backups.list",
  logs: "logs.list",
  rollback: "deployments.rollback",
  rehearse: "deployments.rehearse",
  deploy: "deployments.create",
  "builds log": "builds.logs",
  runs: "runs.list",
  "approvals withdraw": "approvals.withdraw",
  plan: "builds.plan",
  disk: "disk.get",
  "disk limits": "disk.limits",
  follow: "follow.set",
  "webhooks on": "webhooks.update",
  "registries add": "registries.set",
  platform: "platform.overview",
  "platform runtime": "platform.runtime",
  machines: "platform.machines",
  "status --platform": "status.get",
};

const routesOfPhrases: readonly (readonly [phrase: RegExp, row: RouteName])[] = [
  ...Object.entries(rowsOfCommands)
    .toSorted(([one], [other]) => other.length - one.length)
    .map(([words, row]) => [new RegExp(`\`berth ${words}(?: [^\`]*)?\``, "g"), row] as const),
  [/GET \/v1\/me\b/g, "me.get"],
  [/GET \/v1\/status\b/g, "status.get"],
  [/DELETE \/v1\/projects\/:slug\/database\/restored\/:database/g, "backups.drop"],
];

/** Replaces commands and routes in a sentence of the platform by tools. */
export function inToolWords(text: string): string {
  return routesOfPhrases.reduce((said, [phrase, row]) => {
    const { tool, arguments: given } = toolCallOf(row);
    return said.replaceAll(phrase, `the tool ${tool} with ${JSON.stringify(given)}`);
  }, text);
}

/** A call of a tool, ready to be made. */
export interface ToolCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

function toolCallOf(name: RouteName, given: ToolCall["arguments"] = {}): ToolCall {
  for (const group of groups) {
    const action = Object.keys(group.actions).find((each) => group.actions[each] === name);
    if (action === undefined) continue;
    return { tool: changes(route(name)) ? `${group.name}_change` : group.name, arguments: { action, ...given } };
  }
  return {
    tool: "api_call",
    arguments: { route: name, ...(Object.keys(given).length === 0 ? {} : { params: given }) },
  };
}

/** Converts the call that the platform suggests to a tool call. */
export function toolCallFor({ route: name, path }: NextCall): ToolCall {
  const pattern = new RegExp(`^${route(name as RouteName).path.replaceAll(/:(\w+)/g, "(?<$1>[^/?]+)")}`);
  const names = Object.entries(pattern.exec(path)?.groups ?? {});
  const query = new URLSearchParams(path.split("?")[1]);
  return toolCallOf(name as RouteName, {
    ...Object.fromEntries(names.map(([key, value]) => [key, decodeURIComponent(value)])),
    ...Object.fromEntries([...query].map(([key, value]) => [key, /^\d+$/.test(value) ? Number(value) : value])),
  });
}

export function listHint(name: RouteName): string {
  const { tool, arguments: given } = toolCallOf(name);
  return `${tool} with ${JSON.stringify(given)} lists what there is.`;
}
