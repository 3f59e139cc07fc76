import type { TenantDatabase } from "../../src/ports/tenant-database.ts";

const nothing = { row: {}, cut: [] };

/** A project's database that has every table, all of them empty, and takes every row. */
export const emptyTables: TenantDatabase = {
  listTables: async () => ({ outcome: "done", found: { tables: [], total: 0 } }),
  readRows: async () => ({
    outcome: "done",
    found: {
      kind: "table",
      columns: [],
      primary_key: null,
      keys: [],
      rows: [],
      more: false,
      total: 0,
      estimated: false,
    },
  }),
  query: async () => ({ outcome: "done", found: { columns: [], rows: [], cut: [], more: false } }),
  insertRow: async () => ({ outcome: "done", found: nothing }),
  findRow: async () => ({ outcome: "done", found: null }),
  deleteRow: async () => ({ outcome: "done", found: null }),
};
