import { useEffect, useState } from "react";
import { ApiError } from "../../contract/client.ts";
import { call, useClient } from "./api.ts";

const everyMs = 700;

interface BuildLog {
  readonly text: string;
  readonly complete: boolean;
  readonly error: Error | null;
}

const nothing: BuildLog = { text: "", complete: false, error: null };

/** A build's log, read on until it is complete. */
export function useBuildLog(id: string): BuildLog {
  const client = useClient();
  const [log, setLog] = useState<BuildLog>(nothing);
  useEffect(() => {
    const gone = new AbortController();
    setLog(nothing);
    const read = async (offset: number): Promise<void> => {
      try {
        const input = { params: { id }, query: { offset }, signal: gone.signal };
        const part = await call(client, "builds.logs", input);
        setLog((before) => ({ text: before.text + part.log, complete: part.complete, error: null }));
        if (!part.complete) again(part.next_offset);
      } catch (error) {
        if (gone.signal.aborted) return;
        setLog((before) => ({ ...before, error: error as Error }));
        if (!(error instanceof ApiError) || error.status >= 429) again(offset);
      }
    };
    const again = (offset: number) => void setTimeout(() => void (gone.signal.aborted || read(offset)), everyMs);
    void read(0);
    return () => gone.abort();
  }, [client, id]);
  return log;
}
