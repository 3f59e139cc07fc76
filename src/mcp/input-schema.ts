import { z } from "zod";
import { changes, type Row } from "../contract/table.ts";

export type JsonSchema = { readonly type: "object"; readonly [key: string]: unknown };

/** One argument of a row, and the part of the request it belongs to. */
export interface Argument {
  readonly name: string;
  readonly where: "params" | "query" | "body";
  readonly required: boolean;
  readonly schema: z.ZodType;
}

/** Returns a tool's input schema, small for a model's context: no patterns and lengths, which the platform checks and explains. */
export function inputSchema(actions: ReadonlyMap<string, Row>): JsonSchema {
  const rows = [...actions.values()];
  const all = rows.map((row) => argumentsOf(row).map((each) => ({ ...each, name: shownName(each.name) })));
  const names = [...new Set(all.flatMap((each) => each.map(({ name }) => name)))];
  const fields = names.map((name) => [name, fieldSchema(all.flat().filter((each) => each.name === name))]);
  const isNeeded = (name: string) => all.every((each) => each.some((one) => one.name === name && one.required));
  return {
    type: "object",
    properties: {
      action: { type: "string", enum: [...actions.keys()] },
      ...Object.fromEntries(fields),
      ...(rows.some((row) => awaitedRows.includes(row.name))
        ? { wait: { type: "boolean", description: "Answer with the outcome: live, failed …" } }
        : {}),
      ...(rows.some(changes) ? ofWrites : {}),
    },
    required: [...(actions.size === 1 ? [] : ["action"]), ...names.filter(isNeeded)],
    additionalProperties: false,
  };
}

export function argumentsOf(row: Row): readonly Argument[] {
  return [
    ...argumentsAt("params", row.params),
    ...(row.body === null ? [] : argumentsAt("body", row.body)),
    ...argumentsAt("query", row.query),
  ];
}

/** Rows for whose outcome a call may wait. */
export const awaitedRows: readonly string[] = [
  "deployments.create",
  "builds.change",
  "deployments.rehearse",
  "backups.create",
  "env.set",
  "env.import",
  "env.delete",
  "projects.undelete",
];

// Arguments that continue a list; every tool calls them `cursor`.
const continuing = ["after", "offset"];

export function shownName(name: string): string {
  return continuing.includes(name) ? "cursor" : name;
}

/** Returns a row's name for a tool's argument. */
export function spellingOf(row: Row, name: string): string {
  if (name !== "cursor") return name;
  const names = argumentsOf(row).map((each) => each.name);
  return names.includes(name) ? name : (names.find((each) => continuing.includes(each)) ?? name);
}

const ofWrites = {
  dry_run: { type: "boolean", description: "Change nothing; say what would happen" },
  idempotency_key: { type: "string" },
};

// Left out: a tool returns a single answer and has no terminal.
const withoutTools = ["follow", "terminal"];

function argumentsAt(where: Argument["where"], { shape }: z.ZodObject): readonly Argument[] {
  const names = Object.entries(shape).filter(([name]) => !withoutTools.includes(name));
  return names.map(([name, field]) => {
    const schema = field as z.ZodType;
    return { name, where, required: where === "params" || !schema.safeParse(undefined).success, schema };
  });
}

const kept = [
  "type",
  "enum",
  "const",
  "items",
  "additionalProperties",
  "properties",
  "required",
  "anyOf",
  "minimum",
  "maximum",
];

// Merges the same argument of several rows: its meaning is the same in all rows of a tool; where details differ, the platform reports errors.
function fieldSchema(same: readonly Argument[]): unknown {
  const [first] = same as [Argument];
  if (first.name === "slug") return { type: "string", description: "The project" };
  if (first.name === "cursor") return { type: ["string", "integer"], description: "next_cursor of the page before" };
  const schemas = same.map(({ schema, where }) =>
    where === "query" ? querySchema(schema) : schemaOf(schema, "input"),
  );
  const distinct = new Set(schemas.map((schema) => JSON.stringify(schema)));
  return distinct.size === 1 ? schemas[0] : { type: schemas[0]?.["type"] ?? "string" };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): JsonFields {
  return small(z.toJSONSchema(schema, { io, unrepresentable: "any" })) as JsonFields;
}

type JsonFields = Readonly<Record<string, unknown>>;

/** Uses the parsed type for a number or flag in a query string; a list stays the text that is sent. */
function querySchema(schema: z.ZodType): JsonFields {
  const meant = schemaOf(schema, "output");
  return ["integer", "boolean", "string"].includes(String(meant["type"])) ? meant : { type: "string" };
}

function small(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(small);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).filter(([key, value]) => kept.includes(key) && !saysNothing(key, value));
  const fields = Object.fromEntries(
    entries.map(([key, value]) => [key, key === "properties" ? eachField(value) : small(value)]),
  );
  const either = fields["anyOf"];
  if (!Array.isArray(either)) return fields;
  // `integer or null` is shorter as one schema with two types.
  const { anyOf: _, ...rest } = fields;
  const options = either as JsonFields[];
  const types = options.map((one) => one["type"]);
  if (!types.every((type) => typeof type === "string")) return fields;
  return { ...rest, ...options.reduce((all, one) => ({ ...all, ...one }), {}), type: types };
}

function eachField(properties: unknown): unknown {
  return Object.fromEntries(Object.entries(properties as object).map(([name, field]) => [name, small(field)]));
}

/** Detects the bounds that an integer's storage has, and that an object may hold anything. */
function saysNothing(key: string, value: unknown): boolean {
  const isStorage = value === 2_147_483_647 || value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER;
  return isStorage || (key === "additionalProperties" && JSON.stringify(value) === "{}");
}
