import type pg from "pg";
import { sharedServer } from "./shared-server.ts";

/** Returns a connection to the tests' server that may create databases. */
export async function testServer(): Promise<pg.ClientConfig> {
  const url = process.env["BERTH_TEST_DATABASE_URL"];
  return url ? fromUrl(url) : sharedServer();
}

// List the fields, because pg prefers a connectionString to the database named beside it.
function fromUrl(text: string): pg.ClientConfig {
  const url = new URL(text);
  const socket = url.searchParams.get("host");
  return {
    host: socket ?? decodeURIComponent(url.hostname),
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1) || "postgres",
  };
}
