import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { runAttached } from "../../kit/exec.ts";
import { addCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { branchOption } from "./branches.ts";
import { inDatabaseSession, sessionEnvironment } from "../database-session.ts";
import { CliError, usageError } from "../failures.ts";
import { saveFile } from "../save-file.ts";
import { openTunnel } from "../open-tunnel.ts";

export function addFiles(database: Command, ctx: CliContext): void {
  addDump(database, ctx);
  addImport(database, ctx);
}

function addDump(database: Command, ctx: CliContext): void {
  addCommand(database, {
    usage: "dump",
    summary: "Write a dump of the database to stdout (owners only)",
    examples: ["berth db dump > demo.dump", "berth db dump --format plain > demo.sql", "berth db dump -o demo.dump"],
  })
    .option("--format <custom|plain>", "for pg_restore, or SQL text", "custom")
    .option("-o, --output <file>", "write into this file")
    .option("--database <name>", "another database of the project, such as a restored one")
    .option(...branchOption)
    .action(async ({ output, ...body }: { format: string; output?: string; database?: string; branch?: string }) => {
      const { stdout } = ctx.environment;
      if (output === undefined && stdout.isTTY && body.format === "custom")
        throw usageError("A dump in the custom format is not for a terminal.", "Add `> demo.dump` or --format plain.");
      const { slug, client } = await openProject(ctx);
      const asked = await client.call("database.dump", { params: { slug }, body: { ...body, format: formatOf(body) } });
      const receive = (target: NodeJS.WritableStream) => receiveFile(ctx, { slug, id: asked.id, target });
      if (output === undefined) await receive(stdout);
      else await saveFile(ctx, output, { replaces: true }, receive);
    });
}

/** Writes what a tunnel sends to `target`; closes a file at the end, but not stdout. */
export async function receiveFile(
  ctx: CliContext,
  { slug, id, target }: { readonly slug: string; readonly id: string; readonly target: NodeJS.WritableStream },
): Promise<void> {
  const tunnel = await openTunnel(ctx, `/v1/projects/${slug}/database/tunnels/${id}`);
  const end = target !== ctx.environment.stdout;
  await pipeline(tunnel.bytes, target, { end, signal: ctx.signal }).catch(async (fault) => {
    // Report the platform's reason, which says more than a broken stream.
    await tunnel.ended;
    throw fault;
  });
  await tunnel.ended;
}

export function formatOf({ format }: { readonly format: string }): "custom" | "plain" {
  if (format === "custom" || format === "plain") return format;
  throw usageError("--format is custom or plain.");
}

function addImport(database: Command, ctx: CliContext): void {
  addCommand(database, {
    usage: "import <file>",
    summary: "Load a dump into a new database beside the live one; promote it when it is good (owners only)",
    examples: ["berth db import demo.dump", "berth db import demo.sql", "berth backups promote imported_…"],
  }).action(async (file: string) => {
    const path = resolve(ctx.environment.cwd, file);
    const format = await formatOfFile(path);
    const { slug, client } = await openProject(ctx);
    const { id } = await client.call("database.import", { params: { slug }, body: { format } });
    const load = format === "custom" ? loadArchive : loadStatements;
    const name = await load(ctx, { slug, id, path });
    ctx.output.result({ database: name }, (paint) => `${paint.green("Imported")} into the database ${name}`);
    ctx.output.note(
      () =>
        `Check it with \`berth data --database ${name}\`, then make it the live database: \`berth backups promote ${name}\``,
    );
  });
}

/** The first bytes of every pg_dump archive in the custom format. */
const magic = "PGDMP";

async function formatOfFile(path: string): Promise<"custom" | "plain"> {
  try {
    const file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(magic.length)).finally(() => file.close());
    return buffer.toString("latin1", 0, bytesRead) === magic ? "custom" : "plain";
  } catch (fault) {
    throw usageError(`The file cannot be read (${(fault as NodeJS.ErrnoException).code}).`);
  }
}

interface Import {
  readonly slug: string;
  readonly id: string;
  readonly path: string;
}

async function loadArchive(ctx: CliContext, { slug, id, path }: Import): Promise<string> {
  const tunnel = await openTunnel(ctx, `/v1/projects/${slug}/database/tunnels/${id}`);
  const imported = tunnel.next("imported");
  imported.catch(() => {});
  await pipeline(createReadStream(path), tunnel.bytes, { signal: ctx.signal }).catch(async (fault) => {
    await tunnel.ended;
    throw fault;
  });
  return String((await imported)["database"]);
}

/** Feeds SQL text to this machine's psql, because only psql can read it. */
async function loadStatements(ctx: CliContext, { slug, id, path }: Import): Promise<string> {
  return inDatabaseSession(ctx, { slug, id }, async (session) => {
    const args = ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", "--output=/dev/null"];
    const env = { ...ctx.environment.childEnvironment, ...sessionEnvironment(session) };
    const input = Readable.from(portableStatements(createReadStream(path)), { objectMode: false });
    const ended = await runAttached({ file: "psql", args }, { env, input });
    if (ended.exitCode !== 0)
      throw new CliError("refused", "import_failed", {
        message: "The file could not be imported; psql's message is above. Nothing was kept.",
      });
    session.tunnel.tell({ type: "imported" });
    return String((await session.tunnel.next("imported"))["database"]);
  });
}

// Each is one line in pg_dump's output. Roles of another server do not exist here, and newer versions set parameters that older ones do not know.
const unportable = [
  /^ALTER [A-Z ]+ .* OWNER TO .*;$/,
  /^(?:GRANT|REVOKE) .* (?:TO|FROM) .*;$/,
  /^ALTER DEFAULT PRIVILEGES .*;$/,
  /^SET (?:transaction_timeout|default_table_access_method|SESSION AUTHORIZATION) .*;$/,
  /^COMMENT ON EXTENSION .*;$/,
];

// latin1 preserves every byte.
/** Yields a plain dump without the lines that only its old server could run. Data between COPY and `\.` stays unchanged. */
async function* portableStatements(dump: Readable): AsyncGenerator<Buffer> {
  let isData = false;
  for await (const line of createInterface({
    input: dump.setEncoding("latin1"),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    if (isData) isData = line !== "\\.";
    else if (unportable.some((pattern) => pattern.test(line))) continue;
    else isData = /^COPY .* FROM stdin;$/.test(line);
    yield Buffer.from(`${line}\n`, "latin1");
  }
}
