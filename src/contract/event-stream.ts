/** One event of `text/event-stream`. */
export interface StreamEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/**
 * Parses the events of a response body as the HTML standard specifies ("Interpreting an event stream"). Calls `alive` for everything
 * received, heartbeats included. Rejects when reading fails.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough<string>(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let text = "";
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      alive();
      const blocks = (text + next.value).split(/\r?\n\r?\n/);
      text = blocks.pop() ?? "";
      for (const block of blocks) yield* eventOf(block);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function* eventOf(block: string): Generator<StreamEvent> {
  const fields = block.split(/\r?\n/).map((line) => /^([^:]+): ?(.*)$/s.exec(line));
  const values = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ""] : []));
  const data = values("data");
  if (data.length > 0)
    yield { id: values("id").at(-1), event: values("event").at(-1) ?? "message", data: data.join("\n") };
}
