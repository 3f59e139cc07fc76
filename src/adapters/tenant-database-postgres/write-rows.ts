import { escapeIdentifier as name } from "pg";
import type { JsonObject, ShownRow } from "../../ports/tenant-database.ts";
import { operatorsOf, type Key, type Table } from "./catalogue.ts";
import { cellExpression, presentRow } from "./cells.ts";
import { tableName } from "./read-rows.ts";
import type { Session } from "./session.ts";
import { Stopped, type ServerError } from "./unable.ts";
import { refuse, writtenValues, type Written } from "./written-values.ts";

/** Inserts one row and returns it as stored. */
export async function insertRow(session: Session, table: Table, values: JsonObject): Promise<ShownRow> {
  const written = writtenValues(table, values, "values");
  for (const { column } of written) {
    if (column.generated !== null || column.identity === "always")
      refuse(`values.${column.name}`, "is always made by the database");
  }
  const rows: (string | null)[][] = [];
  const take = (row: readonly (string | null)[]) => rows.push([...row]) > 0;
  await session
    .each(
      insertStatement(table, written),
      written.map(({ text }) => text),
      take,
    )
    .catch((error: unknown) => refuseValue(session, error, { field: "values", written }));
  if (rows[0] === undefined)
    throw new Stopped({
      outcome: "conflict",
      problem: "A trigger or rule of the table kept the row from being added.",
    });
  return presentRow(table.columns, rows[0]);
}

function insertStatement(table: Table, written: readonly Written[]): string {
  const columns = written.map(({ column }) => name(column.name)).join(", ");
  const binds = written.map((_, index) => `$${index + 1}`).join(", ");
  const what = written.length === 0 ? "DEFAULT VALUES" : `(${columns}) VALUES (${binds})`;
  const shown = table.columns.map((column) => cellExpression("t", column)).join(", ");
  return `INSERT INTO ${tableName(table)} AS t ${what}${shown === "" ? " RETURNING NULL" : ` RETURNING ${shown}`}`;
}

/** Throws unless the key identifies exactly one row. */
export async function findRow(session: Session, table: Table, given: JsonObject): Promise<null> {
  const { condition, binds, written } = await namedBy(session, table, given);
  const found = await session
    .query(`SELECT FROM ${tableName(table)} AS t WHERE ${condition} LIMIT 2`, binds)
    .catch((error: unknown) => refuseValue(session, error, { field: "key", written }));
  if (found.length === 0) throw new Stopped({ outcome: "missing" });
  if (found.length > 1) throw severalRows();
  return null;
}

/** Deletes the one row that the key identifies; changes nothing otherwise. */
export async function deleteRow(session: Session, table: Table, given: JsonObject): Promise<null> {
  const { condition, binds, written } = await namedBy(session, table, given);
  const deleted = await session
    .change(`DELETE FROM ${tableName(table)} AS t WHERE ${condition}`, binds)
    .catch((error: unknown) => refuseValue(session, error, { field: "key", written }));
  if (deleted === 1) return null;
  // Throw, so that nothing is committed.
  if (deleted > 1) throw severalRows();
  const [kept] = await session.query(`SELECT FROM ${tableName(table)} AS t WHERE ${condition} LIMIT 1`, binds);
  if (kept === undefined) throw new Stopped({ outcome: "missing" });
  throw new Stopped({ outcome: "conflict", problem: "A trigger, rule or policy of the table keeps the row." });
}

// A parent of inherited tables may have several rows with the same key.
function severalRows(): Stopped {
  return new Stopped({ outcome: "conflict", problem: "The key names more than one row." });
}

async function namedBy(session: Session, table: Table, given: JsonObject) {
  const key = keyOf(table, Object.keys(given));
  const written = writtenValues(table, given, "key");
  for (const { column, text } of written) if (text === null) refuse(`key.${column.name}`, "must not be null");
  const condition = conditionOf(key, await operatorsOf(session, key), written);
  return { condition, binds: written.map(({ text }) => text), written };
}

function keyOf(table: Table, given: readonly string[]): Key {
  const wanted = [...given].sort().join("\0");
  const found = table.keys.find((key) => [...key.columns].sort().join("\0") === wanted);
  if (found !== undefined) return found;
  if (table.keys.length === 0)
    return refuse("key", "cannot name a row: the table has no primary key and no unique key without nulls");
  const choices = table.keys.slice(0, 5).map((key) => key.columns.join(", "));
  return refuse("key", `must have exactly the columns of a key: ${choices.join(" or ")}`);
}

/** Returns the condition that compares the columns with the key's own operators. */
function conditionOf(key: Key, operators: readonly string[], written: readonly Written[]): string {
  const tests = written.map(({ column }, index) => {
    const operator = operators[key.columns.indexOf(column.name)];
    return `t.${name(column.name)} ${operator} $${index + 1}::${column.cast_type}`;
  });
  return tests.join(" AND ");
}

/** Blames a data exception (class 22) on the user's value if PostgreSQL failed to parse a parameter. */
async function refuseValue(
  session: Session,
  error: unknown,
  { field, written }: { field: "values" | "key"; written: readonly Written[] },
): Promise<never> {
  const { code = "", where = "" } = error as ServerError;
  if (!code.startsWith("22") && code !== "42804") throw error;
  const bound = /^unnamed portal parameter \$(\d+)/m.exec(where)?.[1];
  const culprit = bound === undefined ? await findCulprit(session, written) : written[Number(bound) - 1];
  if (culprit === undefined) throw error;
  return refuse(`${field}.${culprit.column.name}`, `is not a value of the type ${culprit.column.type}`);
}

// PostgreSQL checks a length after the type, and then names no parameter, so try each value alone.
async function findCulprit(session: Session, written: readonly Written[]): Promise<Written | undefined> {
  for (const each of written) {
    await session.query("ROLLBACK");
    const refused = await session.query(`SELECT $1::${each.column.type}`, [each.text]).then(
      () => false,
      (error: unknown) => ((error as ServerError).code ?? "").startsWith("22"),
    );
    if (refused) return each;
  }
  return undefined;
}
