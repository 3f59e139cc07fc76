import type { TableKind, TableName } from "../../ports/tenant-database.ts";
import type { Session } from "./session.ts";
import { Stopped } from "./unable.ts";

/** A table as the catalogue describes it. */
export interface Table {
  readonly schema: string;
  readonly name: string;
  readonly kind: TableKind;
  readonly columns: readonly Column[];
  /** The primary key first. */
  readonly keys: readonly Key[];
}

export interface Column {
  readonly name: string;
  readonly type: string;
  /** The type without its length, for a cast that cuts nothing. */
  readonly cast_type: string;
  /** Of the type behind domains: `int4`, and null when it is not PostgreSQL's own. */
  readonly base_type: string | null;
  /** S strings, N numbers, E enums … of the type behind domains. */
  readonly category: string;
  /** The length of the type behind domains; -1 for none. */
  readonly modifier: number;
  readonly nullable: boolean;
  readonly default: string | null;
  readonly generated: "stored" | "virtual" | null;
  readonly identity: "always" | "by_default" | null;
}

/** Columns that name one row, each with the operator that its index compares by. */
export interface Key {
  readonly primary: boolean;
  readonly columns: readonly string[];
  readonly operators: readonly string[];
}

/** What the browser shows of `pg_class`; PostgreSQL's own schemas are hidden. */
export const visible = `c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`;

export const kindOf = `CASE WHEN c.relkind = 'v' THEN 'view' WHEN c.relkind = 'm' THEN 'materialized_view' WHEN c.relkind = 'f' THEN 'foreign_table'
  WHEN c.relispartition THEN 'partition' WHEN c.relkind = 'p' THEN 'partitioned_table' ELSE 'table' END`;

/** Looks a table up, with its columns and keys. Throws `Stopped` (missing) when there is none. */
export async function findTable(session: Session, { schema, table }: TableName): Promise<Table> {
  const [found] = await session.query<Table>(lookup, [schema, table]);
  if (found === undefined) throw new Stopped({ outcome: "missing" });
  return { ...found, columns: found.columns ?? [], keys: found.keys ?? [] };
}

/** The column of this name. */
export function columnOf(table: Table, name: string): Column | undefined {
  return table.columns.find((column) => column.name === name);
}

const mostDefaultLetters = 1000;

// A domain stands on a type or on another domain; lengths and "not null" may come at any step.
const baseOfType = `WITH RECURSIVE step AS (
    SELECT t.oid, t.typname, t.typnamespace, t.typtype, t.typcategory, t.typbasetype, t.typtypmod, t.typnotnull, a.atttypmod AS modifier
      FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
    UNION ALL
    SELECT t.oid, t.typname, t.typnamespace, t.typtype, t.typcategory, t.typbasetype, t.typtypmod, t.typnotnull OR step.typnotnull, step.typtypmod
      FROM step JOIN pg_catalog.pg_type t ON t.oid = step.typbasetype WHERE step.typtype = 'd'
  ) SELECT CASE WHEN typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN typname END AS name,
      typcategory AS category, typnotnull AS is_required, modifier FROM step WHERE typtype <> 'd'`;

// A default names no columns. Told of the table, pg_get_expr would take 5 ms for each default of a table with 1,600 columns.
const columns = `SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
    'name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod), 'cast_type', pg_catalog.format_type(a.atttypid, -1),
    'base_type', base.name, 'category', base.category, 'modifier', base.modifier, 'nullable', NOT (a.attnotnull OR base.is_required),
    'default', CASE WHEN a.attgenerated = '' THEN pg_catalog.left(pg_catalog.pg_get_expr(d.adbin, 0), ${mostDefaultLetters}) END,
    'generated', CASE a.attgenerated WHEN 's' THEN 'stored' WHEN 'v' THEN 'virtual' END,
    'identity', CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by_default' END) ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute a
  CROSS JOIN LATERAL (${baseOfType}) base
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped`;

// Strategy 3 of a btree is equality.
const keys = `SELECT pg_catalog.json_agg(key ORDER BY key.primary DESC, pg_catalog.json_array_length(key.columns), key.name) FROM (
    SELECT x.relname AS name, i.indisprimary AS primary,
      pg_catalog.json_agg(a.attname ORDER BY part.place) AS columns,
      pg_catalog.json_agg(pg_catalog.format('OPERATOR(%I.%s)', s.nspname, o.oprname) ORDER BY part.place) AS operators
    FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
    CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS part(attnum, place)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = part.attnum
    JOIN pg_catalog.pg_opclass k ON k.oid = i.indclass[part.place - 1]
    JOIN pg_catalog.pg_amop m ON m.amopfamily = k.opcfamily AND m.amopstrategy = 3 AND m.amoplefttype = k.opcintype AND m.amoprighttype = k.opcintype
    JOIN pg_catalog.pg_operator o ON o.oid = m.amopopr
    JOIN pg_catalog.pg_namespace s ON s.oid = o.oprnamespace
    WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND part.place <= i.indnkeyatts
    GROUP BY x.relname, i.indisprimary, i.indnkeyatts
    HAVING pg_catalog.bool_and(a.attnotnull) AND pg_catalog.count(*) = i.indnkeyatts
  ) key`;

// Compared as text: a value for a "name" would be cut at 63 bytes, and another table found.
const lookup = `SELECT n.nspname AS schema, c.relname AS name, ${kindOf} AS kind, (${columns}) AS columns, (${keys}) AS keys
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::pg_catalog.text AND c.relname = $2::pg_catalog.text AND ${visible}`;
