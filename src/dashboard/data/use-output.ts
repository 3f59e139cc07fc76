import { useEffect, useState } from "react";
import { ApiError, type Answer } from "../../contract/client.ts";
import { call, useClient } from "./api.ts";

const everyMs = 700;

/** A time at which lines were written; it applies from this line on. */
export interface LineTime {
  readonly line: number;
  readonly at: string;
}

interface Part<S> {
  readonly text: string;
  /** Times by the index of a line in this part. */
  readonly times?: readonly LineTime[];
  readonly next_offset: number;
  readonly complete: boolean;
  readonly subject: S;
}

interface Output<S> {
  readonly text: string;
  /** Empty if times are unknown. */
  readonly times: readonly LineTime[];
  readonly complete: boolean;
  readonly error: Error | null;
  /** The run that writes the output, as last read; always undefined for a build. */
  readonly subject: S | undefined;
}

/** Reads the output and state of a one-off command until it has ended. */
export function useRunOutput(slug: string, number: string): Output<Answer<"runs.get">["run"]> {
  const client = useClient();
  return useOutput(`${slug} ${number}`, async (offset, signal) => {
    const input = { params: { slug, number }, query: { offset }, signal };
    const { output: text, run: subject, ...part } = await call(client, "runs.get", input);
    return { ...part, text, subject };
  });
}

/** Reads a build's log until it is complete. */
export function useBuildLog(id: string): Output<undefined> {
  const client = useClient();
  return useOutput(id, async (offset, signal) => {
    const {
      log: text,
      times,
      ...part
    } = await call(client, "builds.logs", { params: { id }, query: { offset }, signal });
    return { ...part, text, times, subject: undefined };
  });
}

/** Reads an output from its last offset until it is complete. `key` must name all values that `readPart` closes over. */
function useOutput<S>(key: string, readPart: (offset: number, signal: AbortSignal) => Promise<Part<S>>): Output<S> {
  const [output, setOutput] = useState<Output<S>>(nothing);
  useEffect(() => {
    const gone = new AbortController();
    setOutput(nothing);
    const read = async (offset: number): Promise<void> => {
      try {
        const { next_offset: next, ...part } = await readPart(offset, gone.signal);
        const { complete } = part;
        setOutput((before) => withPart(before, part));
        if (!complete) again(next, next > offset ? 0 : everyMs);
      } catch (error) {
        if (gone.signal.aborted) return;
        setOutput((before) => ({ ...before, error: error as Error }));
        if (!(error instanceof ApiError) || error.status >= 429) again(offset, everyMs);
      }
    };
    const again = (offset: number, ms: number) => setTimeout(() => void (gone.signal.aborted || read(offset)), ms);
    void read(0);
    return () => gone.abort();
  }, [key]);
  return output;
}

const nothing = { text: "", times: [], complete: false, error: null, subject: undefined };

function withPart<S>(
  before: Output<S>,
  { text, times = [], complete, subject }: Omit<Part<S>, "next_offset">,
): Output<S> {
  const linesBefore = before.text.split("\n").length - 1;
  const added = times.map(({ line, at }) => ({ line: line + linesBefore, at }));
  return { text: before.text + text, times: [...before.times, ...added], complete, error: null, subject };
}
