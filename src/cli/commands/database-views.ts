import type { Command } from "commander";
import type { CliContext } from "../context.ts";
import { oneLine, relativeTime } from "../render/text.ts";
import { actCommand, listCommand } from "../command-tree.ts";
import { branchOption } from "./branches.ts";

const databaseOption = ["--database <name>", "another database of the project, such as a restored one"] as const;

/** Adds the commands that show what the database's server does: its connections, slow statements and extensions. */
export function addViews(database: Command, ctx: CliContext): void {
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
