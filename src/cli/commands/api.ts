import type { Command } from "commander";
import { routes } from "../../contract/routes.ts";
import type { AnyInput } from "../../contract/client.ts";
import { changes, type Row } from "../../contract/table.ts";
import { addCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { fileToSend, readInput } from "../input.ts";
import { nearest } from "../../client/nearest.ts";
import { renderRow } from "../render/row.ts";
import { columns } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";

interface ApiOptions {
  list?: boolean;
  param?: string[];
  query?: string[];
  body?: string;
  idempotencyKey?: string;
}

/** Adds `berth api`: calls any row of the contract by its name. Each row's help is generated from the row. */
export function addApi(program: Command, ctx: CliContext): void {
  const examples = [
    "berth api --list",
    "berth api projects.settings --help",
    "berth api logs.list --param slug=demo --query limit=5",
    "berth api projects.delete -p demo --query dry_run=true",
    `berth api projects.create --body '{"slug":"demo","name":"Demo"}'`,
    "berth api env.set -p demo --param key=API_KEY --body @value.json",
  ];
  const collect = (pair: string, before: string[] = []) => [...before, pair];
  const command = addCommand(program, {
    usage: "api [route]",
    summary: "Call any route of the API and print its answer as JSON",
    examples,
  })
    .option("--list", "list the routes")
    .option("--param <name=value>", "a path parameter; `slug` defaults to the current project", collect)
    .option("--query <name=value>", "a query parameter", collect)
    .option("--body <json>", "the body: JSON, @file, or - for stdin")
    .option(
      "--idempotency-key <key>",
      "repeats with this key within a day return the first response and change nothing",
    )
    .action(async (name: string | undefined, options: ApiOptions) => {
      if (options.list === true || name === undefined) return printList(ctx);
      const row = findRow(name);
      const client = await ctx.client({ anonymous: row.access === "public" });
      const input = await readCall(ctx, row, options);
      const send = () => client.send(row, { ...input, signal: ctx.signal });
      const answer = row.waits ? await withProgress(ctx, row.name, send) : await send();
      ctx.output.result(answer, () => (answer === undefined ? "" : JSON.stringify(answer, null, 2)));
    });
  command.addHelpText("after", () => helpOfRow(command.args[0]));
}

function printList(ctx: CliContext): void {
  const document = {
    routes: routes.map(({ name, method, path, access, summary }) => ({ name, method, path, access, summary })),
  };
  ctx.output.result(document, (paint) =>
    columns(document.routes.map((row) => [paint.bold(row.name), row.method, row.path, paint.dim(row.summary)])),
  );
}

function helpOfRow(name: string | undefined): string {
  const row = routes.find((candidate) => candidate.name === name);
  return row === undefined ? "" : `\n${renderRow(row)}`;
}

function findRow(name: string): Row {
  const row = routes.find((candidate) => candidate.name === name);
  if (row !== undefined) return row;
  const meant = nearest(
    name,
    routes.map((candidate) => candidate.name),
  );
  throw usageError(
    `The API has no route "${name}".`,
    meant === undefined ? "`berth api --list` lists them." : `Did you mean ${meant}?`,
  );
}

async function readCall(ctx: CliContext, row: Row, options: ApiOptions): Promise<AnyInput> {
  const params = pairs(options.param, "--param", Object.keys(row.params.shape));
  if ("slug" in row.params.shape && params["slug"] === undefined) params["slug"] = await currentProject(ctx);
  const query = pairs(options.query, "--query", [
    ...Object.keys(row.query.shape),
    ...(changes(row) ? ["dry_run"] : []),
  ]);
  const missing = Object.keys(row.params.shape).find((name) => params[name] === undefined);
  if (missing !== undefined) throw usageError(`${row.name} needs --param ${missing}=…`);
  if (row.upload) return { params, query, upload: await readFileToUpload(ctx, row, options.body) };
  const body = await readBody(ctx, row, options.body);
  const key = options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey };
  return { params, query, ...(body === undefined ? {} : { body }), ...key };
}

function pairs(given: readonly string[] = [], option: string, known: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.indexOf("=");
      const name = pair.slice(0, Math.max(0, at));
      if (!known.includes(name))
        throw usageError(
          known.length === 0
            ? `This route takes no ${option}.`
            : `${option} takes name=value, where the name is one of: ${known.join(", ")}.`,
        );
      return [name, pair.slice(at + 1)];
    }),
  );
}

async function readFileToUpload(ctx: CliContext, row: Row, given: string | undefined): Promise<Blob> {
  if (given?.startsWith("@") === true) return fileToSend(ctx, given.slice(1));
  if (row.upload === "file") throw usageError(`${row.name} takes a file: --body @photo.jpg`);
  throw usageError(
    `${row.name} takes a tar archive: --body @archive.tar.gz`,
    "`berth deploy --dir .` makes and sends one.",
  );
}

// Errors do not repeat the text, because it may hold secrets.
async function readBody(ctx: CliContext, row: Row, given: string | undefined): Promise<unknown> {
  if (row.body === null) {
    if (given !== undefined) throw usageError(`${row.name} takes no body.`);
    return undefined;
  }
  if (given === undefined) return {};
  const text =
    given === "-" || given.startsWith("@") ? await readInput(ctx, given === "-" ? given : given.slice(1)) : given;
  try {
    return JSON.parse(text);
  } catch {
    throw usageError("The body is not valid JSON.");
  }
}
