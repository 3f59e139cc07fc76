import { access, constants, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Command } from "commander";
import { runAttached } from "../../kit/exec.ts";
import { addCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { inDatabaseSession, sessionEnvironment, type DatabaseSession } from "../database-session.ts";
import type { Environment } from "../environment.ts";
import { ApplicationExit } from "../failures.ts";
import { wholeNumber } from "../input.ts";
import { psqlInSandbox } from "../psql-in-sandbox.ts";
import { facts } from "../render/text.ts";
import { branchOption } from "./branches.ts";

export function addSessions(database: Command, ctx: CliContext): void {
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
