import pg from "pg";

/** Reads DATABASE_URL at the first query, so that a build needs no database. */
export const database = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 5 });
