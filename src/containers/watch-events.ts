import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../kit/log.ts";
import { labels, type DockerContext } from "./settings.ts";

/** Reports the workload whenever one of its containers started or exited. */
export type EventWatch = ReturnType<typeof watchEvents>;

export interface ContainerEvent {
  readonly id: string;
  readonly status: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface EngineEvent {
  readonly id?: string;
  readonly status?: string;
  readonly Actor?: { readonly Attributes?: Readonly<Record<string, string>> };
}

const againMs = 1000;

/** Follows the engine's event stream and reconnects when it ends, as after an engine restart. Reconnecting requests the events missed in between. */
export function watchEvents(context: DockerContext, onEvent: (event: ContainerEvent) => void) {
  const listeners = new Set<(workloadId: string) => void>();
  const closing = new AbortController();
  const log = context.options.log ?? silentLog;
  const handle = (line: string) => {
    const { id = "", status = "", Actor: actor } = JSON.parse(line) as EngineEvent;
    const own = actor?.Attributes ?? {};
    onEvent({ id, status, labels: own });
    const workload = own[labels.workload];
    if (own[labels.role] === "app" && workload !== undefined) for (const listener of listeners) listener(workload);
  };
  const follow = async () => {
    let isFailing = false;
    let brokenAtMs: number | undefined;
    while (!closing.signal.aborted) {
      try {
        const input = await eventStream(context, closing.signal, brokenAtMs);
        brokenAtMs = undefined;
        for await (const line of createInterface({ input })) handle(line);
        isFailing = false;
      } catch (error) {
        if (!isFailing && !closing.signal.aborted) log.warn({ err: error }, "the Docker engine sends no events");
        isFailing = true;
      }
      brokenAtMs ??= Date.now();
      await sleep(againMs, undefined, { signal: closing.signal, ref: false }).catch(() => {});
    }
  };
  void follow();
  return {
    listen(listener: (workloadId: string) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => closing.abort(),
  };
}

async function eventStream({ api, tag }: DockerContext, signal: AbortSignal, sinceMs: number | undefined) {
  const filters = { type: ["container"], event: ["start", "die"], label: [`${labels.runtime}=${tag}`] };
  // The engine keeps recent events and accepts whole seconds; one second too many only repeats a few events.
  const since = sinceMs === undefined ? undefined : Math.floor(sinceMs / 1000) - 1;
  const stream = await api.stream({ path: "/events", query: { filters, since }, signal, timeoutMs: 0 });
  stream.socket.unref();
  return stream;
}
