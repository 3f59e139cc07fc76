import type { TableKind, TableName } from "../../ports/tenant-database.ts";
import type { Session } from "./session.ts";
import { Stopped } from "./unable.ts";

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
  /** The type without its length, for a cast that does not truncate. */
  readonly cast_type: string;
  /** The type behind domains, such as `int4`; null when it is not PostgreSQL's own. */
  readonly base_type: string | null;
  /** The category of the type behind domains: S strings, N numbers, E enums … */
  readonly category: string;
  /** The length of the type behind domains; -1 for none. */
  readonly modifier: number;
  readonly nullable: boolean;
  readonly default: string | null;
  readonly generated: "stored" | "virtual" | null;
  readonly identity: "always" | "by_default" | null;
}

export interface Key {
  readonly index: string;
  readonly primary: boolean;
  readonly columns: readonly string[];
}

/** Selects the relations in `pg_class` that the browser shows; PostgreSQL's own schemas are hidden. */
export const visible = `c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`;

export const kindOf = `CASE WHEN c.relkind = 'v' THEN 'view' WHEN c.relkind = 'm' THEN 'materialized_view' WHEN c.relkind = 'f' THEN 'foreign_table'
  WHEN c.relispartition THEN 'partition' WHEN c.relkind = 'p' THEN 'partitioned_table' ELSE 'table' END`;

/** Returns a table with its columns and keys. Throws `Stopped` (missing) when it does not exist. */
export async function findTable(session: Session, { schema, table }: TableName): Promise<Table> {
  const [found] = await session.query<Found>(lookup, [schema, table]);
  if (found === undefined) throw new Stopped({ outcome: "missing" });
  const all = found.columns ?? [];
  return { ...found, columns: all, keys: (found.indexes ?? []).flatMap((index) => keyOf(index, all)) };
}

type Found = Omit<Table, "columns" | "keys"> & {
  readonly columns: readonly (Column & { readonly number: number })[] | null;
  readonly indexes: readonly UniqueIndex[] | null;
};

interface UniqueIndex {
  readonly index: string;
  readonly primary: boolean;
  /** The columns' numbers, as PostgreSQL formats a vector. */
  readonly numbers: string;
  /** The number of leading columns that form the key; the index only includes the others. */
  readonly count: number;
}

/** Converts a unique index to a key, if none of its columns may be null. */
function keyOf({ index, primary, numbers, count }: UniqueIndex, all: NonNullable<Found["columns"]>): Key[] {
  const parts = numbers.split(" ").slice(0, count);
  const columnsOf = parts.map((number) => all.find((column) => column.number === Number(number)));
  const required = columnsOf.flatMap((column) => (column === undefined || column.nullable ? [] : [column.name]));
  return required.length === count ? [{ index, primary, columns: required }] : [];
}

/** Returns the equality operators of a key's index, one for each column in order: extension types have their own. */
export async function operatorsOf(session: Session, { index }: Key): Promise<readonly string[]> {
  const found = await session.query<{ operator: string }>(operators, [index]);
  return found.map(({ operator }) => operator);
}

export function columnOf(table: Table, name: string): Column | undefined {
  return table.columns.find((column) => column.name === name);
}

const mostDefaultLetters = 1000;

// A domain is based on a type or another domain; each step may add a length or "not null".
const baseOfType = `WITH RECURSIVE step AS (
    SELECT t.oid, t.typname, t.typnamespace, t.typtype, t.typcategory, t.typbasetype, t.typtypmod, t.typnotnull, a.atttypmod AS modifier
      FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid
    UNION ALL
    SELECT t.oid, t.typname, t.typnamespace, t.typtype, t.typcategory, t.typbasetype, t.typtypmod, t.typnotnull OR step.typnotnull, step.typtypmod
      FROM step JOIN pg_catalog.pg_type t ON t.oid = step.typbasetype WHERE step.typtype = 'd'
  ) SELECT CASE WHEN typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN typname END AS name,
      typcategory AS category, typnotnull AS is_required, modifier FROM step WHERE typtype <> 'd'`;

// Passes 0 instead of the table to pg_get_expr, because a default refers to no columns. With the table, each default of a table with 1,600
// columns would take 5 ms.
const columns = `SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
    'name', a.attname, 'number', a.attnum, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod), 'cast_type', pg_catalog.format_type(a.atttypid, -1),
    'base_type', base.name, 'category', base.category, 'modifier', base.modifier, 'nullable', NOT (a.attnotnull OR base.is_required),
    'default', CASE WHEN a.attgenerated = '' THEN pg_catalog.left(pg_catalog.pg_get_expr(d.adbin, 0), ${mostDefaultLetters}) END,
    'generated', CASE a.attgenerated WHEN 's' THEN 'stored' WHEN 'v' THEN 'virtual' END,
    'identity', CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by_default' END) ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute a
  CROSS JOIN LATERAL (${baseOfType}) base
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped`;

const indexes = `SELECT pg_catalog.json_agg(pg_catalog.json_build_object('index', i.indexrelid::pg_catalog.text,
    'primary', i.indisprimary, 'numbers', i.indkey::pg_catalog.text, 'count', i.indnkeyatts) ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid)
  FROM pg_catalog.pg_index i
  WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL`;

// Strategy 3 of a btree is equality.
const operators = `SELECT pg_catalog.format('OPERATOR(%I.%s)', s.nspname, o.oprname) AS operator
  FROM pg_catalog.pg_index i
  CROSS JOIN LATERAL pg_catalog.generate_series(1, i.indnkeyatts::pg_catalog.int4) AS place
  JOIN pg_catalog.pg_opclass k ON k.oid = i.indclass[place - 1]
  JOIN pg_catalog.pg_amop m ON m.amopfamily = k.opcfamily AND m.amopstrategy = 3 AND m.amoplefttype = k.opcintype AND m.amoprighttype = k.opcintype
  JOIN pg_catalog.pg_operator o ON o.oid = m.amopopr
  JOIN pg_catalog.pg_namespace s ON s.oid = o.oprnamespace
  WHERE i.indexrelid = $1::pg_catalog.oid ORDER BY place`;

// Compares as text: the type "name" would truncate the value at 63 bytes, and find another table.
const lookup = `SELECT n.nspname AS schema, c.relname AS name, ${kindOf} AS kind, (${columns}) AS columns, (${indexes}) AS indexes
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = $1::pg_catalog.text AND c.relname = $2::pg_catalog.text AND ${visible}`;
