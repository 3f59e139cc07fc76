import { routes } from "../contract/routes.ts";
import { changes, type Row } from "../contract/table.ts";
import { groups, type Group } from "./groups.ts";
import type { Offer } from "./offer.ts";
import { argumentsOf, inputSchema, shownName, type JsonSchema } from "./input-schema.ts";

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: {
    readonly readOnlyHint: boolean;
    /** Says nothing of a tool that only reads. */
    readonly destructiveHint?: boolean;
    readonly openWorldHint: boolean;
  };
  /** The rows behind it, by action; empty for tools that are not generated from a group. */
  readonly actions: ReadonlyMap<string, Row>;
}

const rows = new Map<string, Row>((routes as readonly Row[]).map((row) => [row.name, row]));

/** Returns every offered tool, in listing order. */
export function offeredTools(offer: Offer): readonly Tool[] {
  const grouped = groups.flatMap((group) => [
    ...groupTool(group, offer, false),
    ...(offer.readOnly ? [] : groupTool(group, offer, true)),
  ]);
  return [diagnoseTool, ...grouped, apiRoutesTool, apiCallTool(offer)];
}

/** Returns the row of this name. Undefined if there is none or it is not offered: secrets and archives don't belong in a model's context. */
export function offeredRow(offer: Offer, name: string): Row | undefined {
  const row = rows.get(name);
  return row === undefined || row.secret !== null || row.upload || (offer.readOnly && changes(row)) ? undefined : row;
}

function groupTool({ name, about, actions }: Group, offer: Offer, changing: boolean): readonly Tool[] {
  const chosen = new Map(
    Object.entries(actions).flatMap(([action, row]) => {
      const found = offeredRow(offer, row);
      return found !== undefined && changes(found) === changing ? [[action, found] as const] : [];
    }),
  );
  if (chosen.size === 0) return [];
  const lines = [...chosen].map(([action, row]) => describeAction(action, row));
  return [
    {
      name: changing ? `${name}_change` : name,
      title: changing ? `Change ${name}` : `Read ${name}`,
      description: [about, ...lines].join("\n"),
      inputSchema: inputSchema(chosen),
      annotations: hints(changing),
      actions: chosen,
    },
  ];
}

export function describeAction(action: string, row: Row): string {
  const names = argumentsOf(row).map((one) => (one.required ? one.name : `${shownName(one.name)}?`));
  return `${action}(${names.join(", ")}): ${row.summary}`;
}

function hints(changing: boolean): Tool["annotations"] {
  return { readOnlyHint: !changing, ...(changing && { destructiveHint: true }), openWorldHint: false };
}

const diagnoseTool: Tool = {
  name: "diagnose",
  title: "Find out what is wrong with a project",
  description:
    "Gathers a project's state in one call (last builds and deployments, failures, crashes, logs, hostnames, metrics, cron, database, backups) and says the likely cause and the next step. Start here.",
  inputSchema: {
    type: "object",
    properties: { slug: { type: "string", description: "The project" } },
    required: ["slug"],
    additionalProperties: false,
  },
  annotations: hints(false),
  actions: new Map(),
};

const apiRoutesTool: Tool = {
  name: "api_routes",
  title: "List the API's routes",
  description: "Lists every route of the API; with `route`, the schema of that one. Call them with api_call.",
  inputSchema: { type: "object", properties: { route: { type: "string" } }, additionalProperties: false },
  annotations: hints(false),
  actions: new Map(),
};

function apiCallTool(offer: Offer): Tool {
  const object = { type: "object" };
  const reading = { route: { type: "string", description: "Such as me.get" }, params: object, query: object };
  const changing = { body: object, dry_run: { type: "boolean" }, idempotency_key: { type: "string" } };
  return {
    name: "api_call",
    title: offer.readOnly ? "Read any route" : "Call any route",
    description: "Calls a route that no other tool has, by its name. api_routes lists them.",
    inputSchema: {
      type: "object",
      properties: offer.readOnly ? reading : { ...reading, ...changing },
      required: ["route"],
      additionalProperties: false,
    },
    annotations: hints(!offer.readOnly),
    actions: new Map(),
  };
}
