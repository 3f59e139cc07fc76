import type pg from "pg";

/** Returns the TypeScript text of `src/store/tables.ts`: the tables of the migrated schema. */
export async function tablesText(client: pg.Client): Promise<string> {
  const { rows } = await client.query<Column>(columnsQuery);
  const tables = Map.groupBy(rows, (column) => column.table);
  const members = [...tables].map(([table, columns]) => memberText(table, columns));
  return `${head}\n\nexport interface Tables {\n${members.join("\n")}\n}\n`;
}

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  readonly has_default: boolean;
  readonly always_generated: boolean;
  /** The check constraint of this column alone, if it lists allowed words. */
  readonly words: string | null;
}

const columnsQuery = `
  select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type, not a.attnotnull as nullable,
    a.atthasdef or a.attidentity <> '' as has_default, a.attidentity = 'a' or a.attgenerated <> '' as always_generated,
    (select pg_get_constraintdef(k.oid) from pg_constraint k
      where k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum] and pg_get_constraintdef(k.oid) like '%ANY (ARRAY[%' limit 1) as words
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> 'schema_migration' and a.attnum > 0 and not a.attisdropped
  order by c.relname, a.attnum`;

const head = `// Generated from the migrated schema by \`npm run gen\`. Do not edit.
import type { ColumnType } from "kysely";

type Generated<T> = T extends ColumnType<infer S, infer I, infer U> ? ColumnType<S, I | undefined, U> : ColumnType<T, T | undefined, T>;
type Timestamp = ColumnType<string, Date | string, Date | string>;
type Json<T> = ColumnType<T, T | string, T | string>;

/** A failure as it is kept; the port's \`Failure\`. */
export interface FailureColumn {
  readonly stage: "receive" | "detect" | "install" | "build" | "release" | "boot" | "health" | "switch";
  readonly code: string;
  readonly summary: string;
  readonly hint: string;
  readonly log_tail: readonly string[];
}

/** An image as it is kept; the port's \`Image\`. */
export interface ImageColumn {
  readonly image_ref: string;
  readonly kind: string;
  readonly web_command: string | null;
  readonly processes: Readonly<Record<string, string>>;
  readonly release_command: string | null;
  readonly size_bytes: number;
}`;

// The content of a jsonb column, by the column's name.
const jsonColumns: Readonly<Record<string, string>> = {
  failure: "FailureColumn",
  image: "ImageColumn",
  row_counts: "readonly { readonly table: string; readonly rows: number }[]",
  comparison: "readonly { readonly table: string; readonly expected: number; readonly actual: number | null }[]",
  detail: "Readonly<Record<string, unknown>>",
};

const typesOfColumns: Readonly<Record<string, string>> = {
  text: "string",
  xid8: "string",
  integer: "number",
  bigint: "number",
  smallint: "number",
  "double precision": "number",
  boolean: "boolean",
  bytea: "Buffer",
  "text[]": "string[]",
  "bigint[]": "string[]",
  "timestamp with time zone": "Timestamp",
};

function memberText(table: string, columns: readonly Column[]): string {
  const lines = columns.map((column) => `    ${column.name}: ${columnType(column)};`);
  return `  ${table}: {\n${lines.join("\n")}\n  };`;
}

function columnType(column: Column): string {
  const plain = plainType(column);
  if (column.always_generated) return `ColumnType<${plain}, never, never>`;
  const nullable = column.nullable ? `${plain} | null` : plain;
  return column.has_default ? `Generated<${nullable}>` : nullable;
}

function plainType(column: Column): string {
  if (column.words !== null)
    return [...column.words.matchAll(/'([^']+)'::text/g)].map(([, word]) => JSON.stringify(word)).join(" | ");
  if (column.type === "jsonb") return `Json<${jsonColumns[column.name] ?? "unknown"}>`;
  const type = typesOfColumns[column.type];
  if (type === undefined)
    throw new Error(`tools/gen/tables.ts knows no TypeScript type for ${column.type} (${column.table}.${column.name})`);
  return type;
}
