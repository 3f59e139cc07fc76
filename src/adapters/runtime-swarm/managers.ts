import { DockerRefused, type DockerApi, type DockerCall } from "../../kit/docker-api.ts";

/** A manager that lost its leader keeps a request until it fails; the same request succeeds once there is another leader. */
const nextAfterMs = 1000;
const readMs = 10_000;

/**
 * Joins the engines of a swarm's managers to one API for what belongs to the swarm: services, tasks, machines, networks and configs. Reads
 * go to one manager; every second without an answer, and when it fails, they go to the next one as well, and the first answer counts. Other
 * requests go to the manager that answered last; the next one gets them only if that one's engine accepts no connection.
 */
export function joinManagers(engines: readonly DockerApi[]): DockerApi {
  let preferred = 0;
  const inOrder = () => engines.map((_, index) => (preferred + index) % engines.length);
  const engineAt = (index: number) => engines[index] as DockerApi;

  const read = <T>(call: DockerCall): Promise<T> =>
    new Promise((resolve, reject) => {
      const order = inOrder();
      const endMs = Date.now() + (call.timeoutMs ?? readMs);
      const over = new AbortController();
      let sent = 0;
      let failed = 0;
      const finish = (settle: () => void) => {
        clearInterval(timer);
        over.abort();
        settle();
      };
      const sendNext = () => {
        const index = order[sent % order.length] as number;
        sent += 1;
        const timeoutMs = Math.max(1, endMs - Date.now());
        engineAt(index)
          .call<T>({ ...call, timeoutMs, signal: over.signal })
          .then(
            (answer) => {
              preferred = index;
              finish(() => resolve(answer));
            },
            (error: unknown) => {
              if (over.signal.aborted) return;
              failed += 1;
              if (isAnswer(error) || (failed === sent && sent >= order.length)) finish(() => reject(error as Error));
              else if (sent < order.length) sendNext();
            },
          );
      };
      const timer = setInterval(() => {
        if (Date.now() + nextAfterMs < endMs) sendNext();
      }, nextAfterMs);
      sendNext();
    });

  const send = async <T>(work: (engine: DockerApi) => Promise<T>): Promise<T> => {
    const [first, ...others] = inOrder().map(engineAt);
    let sending = work(first as DockerApi);
    for (const engine of others)
      sending = sending.catch((error: unknown) => {
        if (!isUnreachable(error)) throw error;
        return work(engine);
      });
    return sending;
  };

  return {
    call: <T>(call: DockerCall) =>
      (call.method ?? "GET") === "GET" ? read<T>(call) : send((engine) => engine.call<T>(call)),
    stream: (call) => send((engine) => engine.stream(call)),
    upgrade: (call) => send((engine) => engine.upgrade(call)),
  };
}

/** Returns whether the swarm answered, such as that an object is missing. Managers without a leader respond with 500 or 503. */
const isAnswer = (error: unknown): boolean => error instanceof DockerRefused && error.status < 500;

const unreachable = new Set(["ECONNREFUSED", "ENOENT", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"]);

/** Returns whether the engine accepted no connection, so it cannot have received the request. */
export const isUnreachable = (error: unknown): boolean => unreachable.has((error as NodeJS.ErrnoException).code ?? "");
