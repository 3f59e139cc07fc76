import { useIsFetching, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ConnectionError } from "../../contract/client.ts";

const againMs = 3000;

const isLost = (error: Error | null) => error instanceof ConnectionError;

/** Shows a line while the platform does not respond. */
export function Connection() {
  const queries = useQueryClient();
  const fetching = useIsFetching();
  const [lost, setLost] = useState(false);
  useEffect(() => {
    const seen = queries
      .getQueryCache()
      .getAll()
      .filter((query) => query.isActive());
    setLost(seen.some(({ state }) => isLost(state.error) || isLost(state.fetchFailureReason)));
  }, [fetching, queries]);
  useEffect(() => {
    if (!lost) return;
    const again = () => void queries.refetchQueries({ type: "active", predicate: ({ state }) => isLost(state.error) });
    const timer = setInterval(again, againMs);
    return () => clearInterval(timer);
  }, [lost, queries]);
  return (
    <div
      role="status"
      className={lost ? "border-b border-warn/40 bg-warn/10 px-4 py-1 text-center text-xs text-warn" : "sr-only"}
    >
      {lost && (
        <>
          The platform does not answer; what is shown may be old.
          <span className="max-sm:sr-only"> Trying again …</span>
        </>
      )}
    </div>
  );
}
