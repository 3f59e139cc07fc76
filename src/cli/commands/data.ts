import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand, commandGroup, listCommand } from "../command-tree.ts";
import { currentProject, openProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { readInput } from "../input.ts";
import { confirm } from "../prompts.ts";
import { table, oneLine, type Paint } from "../render/text.ts";
import { branchOption } from "./branches.ts";

export const addData = commandGroup({
  name: "data",
  summary: "Browse the tables of the project's database",
  commands: () => [addTables, addShow, addInsert, addUpdate, addDelete],
});

interface PageOptions {
  sort?: string;
  dir?: string;
  limit?: string;
  offset?: string;
  search?: string;
  database?: string;
  branch?: string;
}

function addPageOptions(command: Command, sorts: string): Command {
  return command
    .option("--sort <name>", sorts)
    .option("--dir <asc|desc>", "the sort direction")
    .option("-n, --limit <n>", "how many, at most 500")
    .option("--offset <n>", "leave out the first n")
    .option("-q, --search <text>", "only entries that contain this text, ignoring case")
    .option("--database <name>", "another database of the project, such as a restored one")
    .option(...branchOption);
}

function pageQuery({ search, ...options }: PageOptions) {
  return { ...options, q: search };
}

const addTables = listCommand({
  row: "data.tables",
  usage: "tables",
  summary: "List tables and views",
  isDefault: true,
  examples: ["berth data", "berth data tables --sort size_bytes --dir desc", "berth data tables -q order --json"],
  input: (options) => ({ query: pageQuery(options) }),
  items: (answer) => answer.tables,
  columns: {
    TABLE: ({ schema, name }) => oneLine(`${schema}.${name}`, 80),
    KIND: ({ kind }) => kind.replaceAll("_", " "),
    ROWS: ({ estimated_rows: rows }) => (rows === null ? "" : `~ ${rows.toLocaleString("en")}`),
    SIZE: ({ size_bytes: bytes }) => (bytes === null ? "" : bytesText(bytes)),
  },
  empty: "There are no tables.",
  note: ({ total, next_offset: next }) =>
    next === null ? undefined : `There are ${total} tables and views; continue with --offset ${next}.`,
  options: (command) => addPageOptions(command, "schema, name, kind, estimated_rows or size_bytes"),
});

function addShow(data: Command, ctx: CliContext): void {
  const command = addCommand(data, {
    usage: "show <table>",
    summary: "Show a table's rows",
    examples: [
      "berth data show public.users",
      "berth data show users --sort created_at --dir desc -n 20",
      `berth data show '"odd schema"."a.b"' --json`,
    ],
  });
  addPageOptions(command, "a column").action(async (name: string, options: PageOptions) => {
    const params = { slug: await currentProject(ctx), ...parseTable(name) };
    const client = await ctx.client();
    const found = await client.call("data.rows", { params, query: pageQuery(options), signal: ctx.signal });
    ctx.output.result(found, (paint) => rowsTable(paint, found));
    ctx.output.note(() => rowsFootnote(found));
  });
}

const cellLetters = 40;

function rowsTable(paint: Paint, { columns, rows }: Answer<"data.rows">): string {
  const head = columns.map(({ name, primary_key }) => `${oneLine(name, cellLetters)}${primary_key ? "*" : ""}`);
  const lines = (rows as Record<string, unknown>[]).map((row) => columns.map(({ name }) => cellText(paint, row[name])));
  return table(paint, head, lines, `No rows. Columns: ${columns.map(({ name }) => oneLine(name)).join(", ")}`);
}

export function cellText(paint: Paint, value: unknown): string {
  if (value === null) return paint.dim("null");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  // `oneLine` keeps only the first line, so join lines first.
  return oneLine(text.replace(/[\r\n]+/g, " "), cellLetters);
}

function rowsFootnote({ total, estimated, next_offset }: Answer<"data.rows">): string {
  const count =
    total === null ? "Rows are not counted" : `${estimated ? "About " : ""}${total.toLocaleString("en")} rows`;
  return `${count}.${next_offset === null ? "" : ` Continue with --offset ${next_offset}.`}`;
}

interface ChangeOptions {
  json?: string;
  yes?: boolean;
}

function addInsert(data: Command, ctx: CliContext): void {
  addCommand(data, {
    usage: "insert <table> [pairs...]",
    summary: "Add a row (owners only)",
    examples: [
      "berth data insert public.users name=Ada born=1815-12-10",
      `berth data insert events --values '{"kind":"test","payload":{"a":1},"note":null}'`,
      "berth data insert events --values @row.json",
    ],
  })
    .option("--values <json>", "column names and values as JSON; @file, or - for stdin")
    .action(async (name: string, pairs: string[], options: { values?: string }) => {
      const values = await readObject(ctx, pairs, options.values);
      const params = { slug: await currentProject(ctx), ...parseTable(name) };
      const client = await ctx.client();
      const added = await client.call("data.insert", { params, body: { values }, signal: ctx.signal });
      ctx.output.result(added, (paint) => storedRow(paint, added.row, "Added."));
    });
}

function storedRow(paint: Paint, row: unknown, empty: string): string {
  const cells = Object.entries(row as Record<string, unknown>);
  return table(
    paint,
    ["COLUMN", "VALUE"],
    cells.map(([column, value]) => [oneLine(column), cellText(paint, value)]),
    empty,
  );
}

function addUpdate(data: Command, ctx: CliContext): void {
  addCommand(data, {
    usage: "update <table> [pairs...]",
    summary: "Change columns of the one row that a key identifies (owners only)",
    examples: [
      "berth data update public.users name=Ada --key '{\"id\":7}'",
      `berth data update events --key '{"id":7}' --values '{"note":null}' --yes`,
    ],
  })
    .requiredOption("--key <json>", "the key's columns and values as JSON; @file, or - for stdin")
    .option("--values <json>", "the new values as JSON; @file, or - for stdin")
    .option("-y, --yes", "don't ask")
    .action(async (name: string, pairs: string[], options: ChangeOptions & { key: string; values?: string }) => {
      const key = await readObject(ctx, [], options.key);
      const values = await readObject(ctx, pairs, options.values);
      const { slug, client } = await openProject(ctx);
      await confirm(ctx, `This changes one row of ${oneLine(name)} in ${slug}.`, { name: slug, yes: options.yes });
      const params = { slug, ...parseTable(name) };
      const changed = await client.call("data.update", { params, body: { key, values }, signal: ctx.signal });
      ctx.output.result(changed, (paint) => storedRow(paint, changed.row, "Changed."));
    });
}

function addDelete(data: Command, ctx: CliContext): void {
  addCommand(data, {
    usage: "delete <table> [pairs...]",
    summary: "Delete the one row that a key identifies (owners only)",
    examples: ["berth data delete public.users id=7", "berth data delete members team=3 person=9 --yes"],
  })
    .option("--key <json>", "the key's columns and values as JSON; @file, or - for stdin")
    .option("-y, --yes", "don't ask")
    .action(async (name: string, pairs: string[], options: ChangeOptions & { key?: string }) => {
      const key = await readObject(ctx, pairs, options.key);
      const { slug, client } = await openProject(ctx);
      await confirm(ctx, `This deletes one row of ${oneLine(name)} in ${slug}.`, { name: slug, yes: options.yes });
      await client.call("data.delete", { params: { slug, ...parseTable(name) }, body: { key }, signal: ctx.signal });
      ctx.output.note(() => `Deleted a row of ${oneLine(name)}.`);
    });
}

/** Parses name=value pairs, whose values PostgreSQL converts to the column's type, or a JSON object. */
async function readObject(
  ctx: CliContext,
  pairs: readonly string[],
  json: string | undefined,
): Promise<Record<string, unknown>> {
  if (json !== undefined && pairs.length > 0) throw usageError("Give either pairs name=value or JSON.");
  if (json === undefined) return Object.fromEntries(pairs.map(parsePair));
  const text = json === "-" || json.startsWith("@") ? await readInput(ctx, json.replace(/^@/, "")) : json;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw usageError("That is not valid JSON.");
  }
}

function parsePair(pair: string, index: number): readonly [string, string] {
  const at = pair.indexOf("=");
  if (at <= 0)
    throw usageError(`Argument ${index + 1} is not of the form name=value.`, "For null and JSON: --values '{…}'");
  return [pair.slice(0, at), pair.slice(at + 1)];
}

/** Parses `users`, `public.users` or, as in SQL, `"odd schema"."a.b"`. */
function parseTable(text: string): { schema: string; table: string } {
  const part = String.raw`(?:"((?:[^"]|"")+)"|([^".]+))`;
  const found = new RegExp(`^(?:${part}\\.)?${part}$`, "u").exec(text);
  if (found === null) throw usageError('A table is named table, schema.table or "schema"."table".');
  const [, quotedSchema, schema, quotedTable, name] = found;
  const plain = (quoted: string | undefined, bare: string | undefined) => quoted?.replaceAll('""', '"') ?? bare;
  return { schema: plain(quotedSchema, schema) ?? "public", table: plain(quotedTable, name) ?? "" };
}
