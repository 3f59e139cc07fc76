import { access, constants, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand, commandGroup, rowCommand, actCommand, listCommand } from "../command-tree.ts";
import { openProject, type CliContext, currentProject } from "../context.ts";
import { readInput, wholeNumber } from "../input.ts";
import { paintStatus, facts, table, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { addBranches, branchOption } from "./branches.ts";
import { cellText } from "./data.ts";
import { addFiles } from "./database-files.ts";
import { addRestore } from "./restored.ts";
import { runAttached } from "../../kit/exec.ts";
import { inDatabaseSession, sessionEnvironment, type DatabaseSession } from "../database-session.ts";
import type { Environment } from "../environment.ts";
import { ApplicationExit } from "../failures.ts";
import { psqlInSandbox } from "../psql-in-sandbox.ts";

export const addDatabase = commandGroup({
  name: "db",
  summary: "Show or create the project's database",
  alias: "database",
  commands: () => [
    rowCommand({
      row: "database.get",
      usage: "show",
      summary: "Show the project's database",
      isDefault: true,
      examples: ["berth db", "berth db show -p demo --json"],
      text: describe,
    }),
    rowCommand({
      row: "database.create",
      usage: "create",
      summary: "Give the project a PostgreSQL database",
      examples: ["berth db create", "berth db create -p demo"],
      input: ({ startEmpty }) => ({ body: { start_empty: startEmpty } }),
      progress: ({ words }) => `Creating a database for ${words.slug}`,
      text: describe,
      note: () =>
        "DATABASE_URL in the application's environment names it. A running application restarts with it in a few seconds.",
      options: (command) =>
        command.option("--start-empty", "replace a database whose data is missing from the platform's data folder"),
    }),
    addRestore,
    addBranches,
    addQuery,
    addViews,
    addSessions,
    addFiles,
  ],
});

function describe(database: Answer<"database.get">, paint: Paint): string {
  return facts(paint, [
    ["status", paintStatus(paint, database.status)],
    ["engine", `PostgreSQL ${database.engine_version ?? ""}`.trim()],
    ["size", database.size_bytes === null ? null : bytesText(database.size_bytes)],
    ["connections", database.connections === null ? null : String(database.connections)],
    ["created", relativeTime(database.created_at)],
    [
      "failure",
      database.failure === null ? null : `${oneLine(database.failure.summary)} ${oneLine(database.failure.hint)}`,
    ],
  ]);
}

/** Adds `berth db query`: runs one read-only statement. */
function addQuery(database: Command, ctx: CliContext): void {
  addCommand(database, {
    usage: "query <sql>",
    summary: "Run one SQL statement that reads: 5 s and 500 rows at most",
    examples: [
      "berth db query 'select count(*) from users'",
      "berth db query --json 'explain select * from orders where total > 100'",
      "berth db query - < report.sql",
    ],
  })
    .option("--database <name>", "another database of the project, such as a restored one")
    .option(...branchOption)
    .action(async (given: string, options: { database?: string; branch?: string }) => {
      const sql = given === "-" ? await readInput(ctx, "-") : given;
      const { slug, client } = await openProject(ctx);
      const body = { sql, ...options };
      const found = await client.call("data.query", { params: { slug }, body, signal: ctx.signal });
      ctx.output.result(found, (paint) => resultTable(paint, found));
      if (found.more)
        ctx.output.note(() => `There are more rows than these ${found.rows.length}: add LIMIT and OFFSET.`);
    });
}

function resultTable(paint: Paint, { columns, rows }: Answer<"data.query">): string {
  const head = columns.map(({ name }) => oneLine(name, 40));
  const lines = rows.map((row) => row.map((cell) => cellText(paint, cell)));
  return table(paint, head, lines, columns.length === 0 ? "Done; there is nothing to show." : "No rows.");
}

function addSessions(database: Command, ctx: CliContext): void {
  addPsql(database, ctx);
  addTunnel(database, ctx);
}

interface SessionOptions {
  database?: string;
  branch?: string;
  port?: string;
}

const otherDatabase = ["--database <name>", "another database of the project, such as a restored one"] as const;

function addPsql(database: Command, ctx: CliContext): void {
  addCommand(database, {
    usage: "psql [arguments...]",
    summary: "Open psql on the project's database; without a local psql, the one beside the application (owners only)",
    examples: [
      "berth db psql",
      "berth db psql --branch try",
      "berth db psql -- -c 'select now()'",
      "berth db psql -- -f migrate.sql",
    ],
  })
    .usage("[options] -- [arguments...]")
    .option(...otherDatabase)
    .option(...branchOption)
    .action(async (args: string[], options: SessionOptions) => {
      if (!(await hasProgram(ctx.environment, "psql"))) return psqlInSandbox(ctx, args, options);
      const ended = await inSession(ctx, options, (session) => {
        const env = { ...ctx.environment.childEnvironment, ...sessionEnvironment(session) };
        return runAttached({ file: "psql", args }, { env, cwd: ctx.environment.cwd });
      });
      throw new ApplicationExit(ended.exitCode ?? 1);
    });
}

function addTunnel(database: Command, ctx: CliContext): void {
  addCommand(database, {
    usage: "tunnel",
    summary: "Let a graphical tool on this machine reach the database until Ctrl-C (owners only)",
    examples: ["berth db tunnel", "berth db tunnel --port 5433"],
  })
    .option("--port <n>", "listen on this port of 127.0.0.1; by default a free one")
    .option(...otherDatabase)
    .option(...branchOption)
    .action((options: SessionOptions) => inSession(ctx, options, (session) => showUntilEnd(ctx, session)));
}

async function inSession<T>(
  ctx: CliContext,
  { database, branch, port }: SessionOptions,
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const slug = await currentProject(ctx);
  const wanted = port === undefined ? {} : { port: wholeNumber(port, "--port", { least: 1, most: 65_535 }) };
  const body = { database, branch };
  const { id } = await (await ctx.client()).call("database.connect", { params: { slug }, body, signal: ctx.signal });
  return inDatabaseSession(ctx, { slug, id, ...wanted }, work);
}

/** Shows how to log in, and waits. The password is in a file that only this user can read and that is deleted with the tunnel. */
async function showUntilEnd(
  ctx: CliContext,
  { port, user, password, database, tunnel }: DatabaseSession,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "berth-"));
  try {
    const password_file = join(folder, "pgpass");
    await writeFile(password_file, `127.0.0.1:${port}:*:${user}:${password}\n`, { mode: 0o600 });
    const shown = { host: "127.0.0.1", port, user, database, password_file };
    ctx.output.result(shown, (paint) =>
      facts(paint, [
        ["host", shown.host],
        ["port", String(port)],
        ["database", database],
        ["user", user],
        ["password file", password_file],
      ]),
    );
    ctx.output.note(
      () => "The file is in libpq's format (PGPASSFILE). Ctrl-C closes the tunnel and ends this user and password.",
    );
    const stopped = new Promise<void>((resolve) =>
      ctx.signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    await Promise.race([stopped, tunnel.ended]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function hasProgram({ childEnvironment }: Environment, name: string): Promise<boolean> {
  const folders = (childEnvironment["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = await Promise.all(
    folders.map((folder) =>
      access(join(folder, name), constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}

const databaseOption = ["--database <name>", "another database of the project, such as a restored one"] as const;

/** Adds the commands that show what the database's server does: its connections, slow statements and extensions. */
function addViews(database: Command, ctx: CliContext): void {
  listCommand({
    row: "data.connections",
    usage: "connections",
    summary: "List the connections to the database, and what each does",
    examples: ["berth db connections", "berth db connections --json"],
    input: (options) => ({ query: options }),
    items: (answer) => answer.connections,
    columns: {
      PID: ({ pid }) => String(pid),
      KIND: ({ kind }) => kind,
      APPLICATION: ({ application }) => oneLine(application, 30),
      STATE: ({ state, waits_for }) =>
        state === "active" && waits_for !== null ? `waits: ${waits_for}` : (state ?? ""),
      SINCE: ({ since }) => (since === null ? "" : relativeTime(since)),
      STATEMENT: ({ query }) => oneLine((query ?? "").replace(/\s+/g, " "), 60),
    },
    empty: "Nothing is connected.",
    note: ({ connections, limit, more }) =>
      `${more ? `More than ${connections.length}` : connections.length} connections; the application may have ${limit}.`,
    options: (command) => command.option(...databaseOption).option(...branchOption),
  })(database, ctx);
  actCommand({
    row: "data.end_connection",
    usage: "disconnect <pid>",
    summary: "End a connection of the application (owners only)",
    examples: ["berth db disconnect 4711", "berth db disconnect 4711 --yes"],
    input: (options) => ({ query: options }),
    warning: ({ words }) =>
      `This ends the connection ${words["pid"]} to the database of ${words["slug"]}; what it has not committed is rolled back.`,
    typed: ({ words }) => words["slug"] ?? "",
    text: (_, __, { words }) => `Ended the connection ${words["pid"]}.`,
    options: (command) => command.option(...databaseOption).option(...branchOption),
  })(database, ctx);
  addSlow(database, ctx);
  listCommand({
    row: "data.extensions",
    usage: "extensions",
    summary: "List PostgreSQL's extensions, and who may create them",
    examples: ["berth db extensions", "berth db psql -- -c 'create extension pgcrypto'"],
    input: (options) => ({ query: options }),
    items: (answer) => answer.extensions,
    columns: {
      EXTENSION: ({ name }) => name,
      INSTALLED: ({ version }) => version ?? "",
      AVAILABLE: ({ available_version: version }) => version ?? "",
      "CREATED BY": ({ creator }) => (creator === "project" ? "the project" : "the operator"),
      ABOUT: ({ about }) => oneLine(about, 60),
    },
    empty: "The server has no extensions.",
    options: (command) => command.option(...databaseOption).option(...branchOption),
  })(database, ctx);
}

const addSlow = listCommand({
  row: "data.statements",
  usage: "slow",
  summary: "List the statements that took the most time, without their values",
  examples: ["berth db slow", "berth db slow --sort mean"],
  input: (options) => ({ query: options }),
  items: (answer) => answer.statements,
  columns: {
    TOTAL: ({ total_ms: ms }) => milliseconds(ms),
    CALLS: ({ calls }) => calls.toLocaleString("en"),
    MEAN: ({ mean_ms: ms }) => milliseconds(ms),
    LONGEST: ({ most_ms: ms }) => milliseconds(ms),
    STATEMENT: ({ query }) => oneLine(query.replace(/\s+/g, " "), 100),
  },
  empty: "No statement was counted.",
  note: ({ collected }) =>
    collected
      ? undefined
      : "This server does not count statements. A database on this machine does from its next start on.",
  options: (command) =>
    command
      .option("--sort <total|mean|most>", "by total time, mean time or the longest run; by default total")
      .option(...databaseOption)
      .option(...branchOption),
});

function milliseconds(ms: number): string {
  return ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}
