import { z } from "zod";
import type { Row } from "../../contract/table.ts";

/** Formats the help of one row: what it does, who may call it, its arguments and possible error codes. */
export function renderRow(row: Row): string {
  const lines = [
    `${row.name}: ${row.summary}.`,
    `  ${row.method} ${row.path}`,
    `  access: ${row.access}${(row.scope === null ? row.further_scopes : [row.scope, ...row.further_scopes])
      .map((scope) => `, scope ${scope}`)
      .join("")}${row.approval ? ", waits for a human with a token in approval mode" : ""}`,
    ...fields("--param", row.params),
    ...fields("--query", row.query),
    ...(row.body === null ? [] : fields("--body", row.body)),
  ];
  if (row.errors.length > 0) lines.push(`  errors: ${row.errors.join(", ")}`);
  return lines.join("\n");
}

interface FieldSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly FieldSchema[];
  readonly items?: FieldSchema;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
}

function fields(option: string, schema: z.ZodObject): string[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" }) as {
    properties?: Record<string, FieldSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, field]) => {
    const standard = field.default === undefined ? "optional" : `default ${JSON.stringify(field.default)}`;
    return `  ${option} ${name}: ${typeName(field)} (${required.includes(name) ? "required" : standard})`;
  });
}

function typeName(field: FieldSchema): string {
  if (field.anyOf !== undefined) return field.anyOf.map(typeName).join(" or ");
  if (field.enum !== undefined) return field.enum.length > 8 ? "string" : field.enum.join(" | ");
  if (field.type === "array") return `list of ${typeName(field.items ?? {})}`;
  const range =
    field.minimum !== undefined && field.maximum !== undefined ? ` from ${field.minimum} to ${field.maximum}` : "";
  return `${String(field.type ?? "any")}${range}`;
}
