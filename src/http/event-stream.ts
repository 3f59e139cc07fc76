import type { ServerEvent } from "../features/context.ts";
import { answerTo } from "./errors.ts";

// Sent because proxies close connections that are idle for a minute.
const aliveEveryMs = 15_000;
const retryMs = 2000;

/**
 * Encodes events as `text/event-stream`. Ends when the events end or the signal aborts. After a refusal or a fault, the last event is
 * `error`, with the body of an API error.
 */
export async function* eventStream(events: AsyncIterable<ServerEvent>, signal: AbortSignal): AsyncGenerator<string> {
  const source = events[Symbol.asyncIterator]();
  const aborted = new Promise<"aborted">((resolve) => {
    if (signal.aborted) resolve("aborted");
    signal.addEventListener("abort", () => resolve("aborted"), { once: true });
  });
  yield `retry: ${retryMs}\n\n`;
  try {
    for (let next = source.next(); ;) {
      const came = await Promise.race([next, aborted, pause()]);
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

function pause(): Promise<"quiet"> {
  return new Promise((resolve) => setTimeout(resolve, aliveEveryMs, "quiet" as const).unref());
}
