import type { TenantDatabase } from "../../ports/tenant-database.ts";
import { createAnswerMemory } from "./answer-memory.ts";
import { findTable } from "./catalogue.ts";
import { listTables } from "./list-tables.ts";
import { readRows } from "./read-rows.ts";
import { runQuery } from "./run-query.ts";
import { inSession, type SessionOptions } from "./session.ts";
import { createSlots } from "./slots.ts";
import { deleteRow, findRow, insertRow } from "./write-rows.ts";

export interface PostgresTenantDatabaseOptions {
  /** How many calls may read one database at the same time; they share the role's connections with the application. */
  readonly connections: number;
  /** Terminates a session of the project's role from outside, whatever it is executing. */
  readonly endSession: SessionOptions["endSession"];
  readonly limitSession: SessionOptions["limitSession"];
  /** What the answers of all databases may take of the memory together. Default 256 MiB. */
  readonly answerBytes?: number;
}

const defaultAnswerBytes = 256 * 1024 * 1024;

// Dashboard pages send a few requests at once; a request that waits longer than this gets `unavailable`.
const slotWaitMs = 2000;

/** Reads projects' databases over their sockets, as the projects' own roles. */
export function createPostgresTenantDatabase(options: PostgresTenantDatabaseOptions): TenantDatabase {
  const slots = createSlots({ count: options.connections, waitMs: slotWaitMs });
  const memory = createAnswerMemory(options.answerBytes ?? defaultAnswerBytes);
  const session: SessionOptions = { ...options, slots, memory };
  return {
    listTables: (login, query) => inSession(session, { login, mode: "READ ONLY" }, (open) => listTables(open, query)),
    readRows: (login, name, query) =>
      inSession(session, { login, mode: "READ ONLY" }, async (open) =>
        readRows(open, await findTable(open, name), query),
      ),
    query: (login, statement) =>
      inSession(session, { login, mode: "READ ONLY", search_path: "public" }, (open) => runQuery(open, statement)),
    insertRow: (login, name, values) =>
      inSession(session, { login, mode: "READ WRITE" }, async (open) =>
        insertRow(open, await findTable(open, name), values),
      ),
    findRow: (login, name, key) =>
      inSession(session, { login, mode: "READ ONLY" }, async (open) => findRow(open, await findTable(open, name), key)),
    deleteRow: (login, name, key) =>
      inSession(session, { login, mode: "READ WRITE" }, async (open) =>
        deleteRow(open, await findTable(open, name), key),
      ),
  };
}
