import type { Db } from "../../store/database.ts";
import { createSignal } from "../../store/signal.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { edgesConfirm, type Confirmed } from "./edges.ts";
import { nextRouteVersion } from "./routes.ts";

export interface AwaitEdges {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Defaults to the routes. */
  readonly of?: Confirmed;
}

/**
 * Waits until every live edge serves what was committed before this call. The version is drawn after those commits, and an edge draws its
 * own version before it reads the rows, so an edge that reports at least this version has read them.
 */
export async function awaitEdges(
  { db, wakeups }: { readonly db: Db; readonly wakeups: Pick<Wakeups, "on" | "send"> },
  { timeoutMs, signal, of = "route_version" }: AwaitEdges,
): Promise<"confirmed" | "behind" | "no_edge"> {
  const reports = createSignal(wakeups, ["edges"]);
  const endMs = performance.now() + timeoutMs;
  try {
    const version = await nextRouteVersion(db);
    await wakeups.send(db, "edge");
    for (;;) {
      const state = await edgesConfirm(db, version, of);
      const leftMs = endMs - performance.now();
      if (state === "confirmed" || leftMs <= 0 || signal?.aborted) return state;
      await reports.wait(Math.min(leftMs, pollMs), signal);
    }
  } finally {
    reports.stop();
  }
}

const pollMs = 250;
