import type { QueryClient } from "@tanstack/react-query";
import type { Client } from "../../contract/client.ts";

/** Refreshes what is shown; the stream of changes takes its place where the platform has one. */
export function followChanges(_client: Client, queries: QueryClient): () => void {
  const timer = setInterval(() => void queries.invalidateQueries({ refetchType: "active" }), 10_000);
  return () => clearInterval(timer);
}
