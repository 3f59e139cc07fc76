import type { ServerEvent } from "../features/context.ts";
import { answerTo } from "./errors.ts";

// Sent because proxies close connections that are idle for a minute.
const aliveEveryMs = 15_000;
const retryMs = 2000;

/** Encodes events as `text/event-stream`. Ends with them or when the signal aborts; a fault becomes the event `error`, an API error. */
export async function* eventStream(events: AsyncIterable<ServerEvent>, signal: AbortSignal): AsyncGenerator<string> {
  const source = events[Symbol.asyncIterator]();
  yield `retry: ${retryMs}\n\n`;
  try {
    for (let next = source.next(); ;) {
      const came = await nextWithin(next, signal);
      if (came === "quiet") yield ":\n\n";
      else if (came === "aborted") throw signal.reason;
      else if (came.done === true) return;
      else {
        yield textOf(came.value);
        next = source.next();
      }
    }
  } catch (error) {
    const { body } = answerTo(error);
    yield textOf({ event: "error", data: body });
  } finally {
    // Not awaited: a source that is blocked would keep the connection open.
    void Promise.resolve(source.return?.()).catch(() => {});
  }
}

function textOf({ id, event, data }: ServerEvent): string {
  const fields = [
    ...(id === undefined ? [] : [`id: ${oneLine(id)}`]),
    ...(event === undefined ? [] : [`event: ${oneLine(event)}`]),
    `data: ${JSON.stringify(data)}`,
  ];
  return `${fields.join("\n")}\n\n`;
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n\0]/g, " ");
}

/** Waits a while for the next event. A race with a promise that outlives the event would keep every event that was sent. */
async function nextWithin(
  next: Promise<IteratorResult<ServerEvent>>,
  signal: AbortSignal,
): Promise<IteratorResult<ServerEvent> | "quiet" | "aborted"> {
  if (signal.aborted) return "aborted";
  const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<ServerEvent> | "quiet" | "aborted">();
  const abort = () => resolve("aborted");
  const timer = setTimeout(resolve, aliveEveryMs, "quiet").unref();
  signal.addEventListener("abort", abort, { once: true });
  next.then(resolve, reject);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}
