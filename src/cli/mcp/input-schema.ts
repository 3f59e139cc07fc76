import { z } from "zod";
import { changes, type Row } from "../../contract/table.ts";
import type { Offer } from "./offer.ts";

export type JsonSchema = { readonly type: "object"; readonly [key: string]: unknown };

/** One thing that a row takes, and where it goes. */
export interface Argument {
  readonly name: string;
  readonly where: "params" | "query" | "body";
  readonly required: boolean;
  readonly schema: z.ZodType;
}

/**
 * What a tool takes, small enough for a model's context: types and choices, but no patterns and lengths, which the platform checks and
 * explains itself.
 */
export function inputSchema(actions: ReadonlyMap<string, Row>, offer: Offer): JsonSchema {
  const rows = [...actions.values()];
  const all = rows.map((row) => argumentsOf(row).map((each) => ({ ...each, name: shownName(each.name) })));
  const names = [...new Set(all.flatMap((each) => each.map(({ name }) => name)))];
  const fields = names.map((name) => [
    name,
    fieldSchema(
      all.flat().filter((each) => each.name === name),
      offer,
    ),
  ]);
  const isNeeded = (name: string) =>
    all.every((each) => each.some((one) => one.name === name && one.required)) &&
    !(name === "slug" && offer.project !== undefined);
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

/** Everything that a row takes. */
export function argumentsOf(row: Row): readonly Argument[] {
  return [
    ...argumentsAt("params", row.params),
    ...(row.body === null ? [] : argumentsAt("body", row.body)),
    ...argumentsAt("query", row.query),
  ];
}

/** Rows whose end a call may wait for. */
export const awaitedRows: readonly string[] = [
  "deployments.create",
  "builds.change",
  "backups.create",
  "env.set",
  "env.delete",
  "projects.undelete",
];

// What continues a list is called `cursor` in every tool, whatever the row calls it.
const continuing = ["after", "offset"];

/** How an argument of a row is called here. */
export function shownName(name: string): string {
  return continuing.includes(name) ? "cursor" : name;
}

/** How a row calls an argument that is called so here. */
export function spellingOf(row: Row, name: string): string {
  if (name !== "cursor") return name;
  const names = argumentsOf(row).map((each) => each.name);
  return names.includes(name) ? name : (names.find((each) => continuing.includes(each)) ?? name);
}

const ofWrites = {
  dry_run: { type: "boolean", description: "Change nothing; say what would happen" },
  idempotency_key: { type: "string" },
};

// A tool gives one answer, and has no terminal.
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

// One name means one thing in all rows of a tool; where they differ in detail, the platform says what is wrong.
function fieldSchema(same: readonly Argument[], offer: Offer): unknown {
  const [first] = same as [Argument];
  if (first.name === "slug")
    return {
      type: "string",
      description: offer.project === undefined ? "The project" : `The project; ${offer.project} if left out`,
    };
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

/** A number or flag of a query string is what its text means; a list stays the text that it is sent as. */
function querySchema(schema: z.ZodType): JsonFields {
  const meant = schemaOf(schema, "output");
  return ["integer", "boolean", "string"].includes(String(meant["type"])) ? meant : { type: "string" };
}

function small(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(small);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).filter(([key, value]) => kept.includes(key) && !isSafeInteger(value));
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

/** zod describes every whole number as one that fits a double. */
function isSafeInteger(value: unknown): boolean {
  return value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER;
}
