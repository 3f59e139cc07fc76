import { ApiError, ConnectionError, type Answer, type Client } from "../contract/client.ts";
import { isDecided } from "../contract/states.ts";
import { until } from "../kit/until.ts";

type Deployment = Answer<"deployments.list">["deployments"][number];

/** How to wait for an outcome that comes after the call's response. */
export interface Watch {
  readonly client: Client;
  readonly signal: AbortSignal;
  /** Reports progress. */
  readonly say: (message: string) => void;
}

// The platform collects changes of variables for two seconds, then creates the deployment.
const collectMs = 3000;
const noneComesMs = 15_000;
const deploymentLimitMs = 10 * 60_000;
const readyLimitMs = 2 * 60_000;

/** Prepares to wait for the deployment that the next change of variables causes; resolves to null if nothing has to be restarted. */
export async function watchVariables(watch: Watch, slug: string): Promise<() => Promise<Deployment | null>> {
  const { client, signal, say } = watch;
  const read = async () => (await client.call("deployments.list", { params: { slug }, signal })).deployments;
  const before = (await read())[0]?.number ?? 0;
  return async () => {
    const project = await client.call("projects.get", { params: { slug }, signal });
    if (project.active_deployment === null) return null;
    const changedAtMs = Date.now();
    const look = async () => {
      const [newest] = await read();
      const waitedMs = Date.now() - changedAtMs;
      const isNew = newest !== undefined && newest.number > before;
      if (!isNew) return waitedMs > noneComesMs ? { deployment: null } : undefined;
      say(`deployment ${newest.number} is ${newest.status}`);
      return isDecided(newest) && waitedMs > collectMs ? { deployment: newest } : undefined;
    };
    return (await awaited(look, deploymentLimitMs, watch)).deployment;
  };
}

/** Waits until an undeleted project serves again; resolves to false if it had no deployment. */
export async function awaitServing(watch: Watch, slug: string): Promise<boolean> {
  const { client, signal, say } = watch;
  const project = await client.call("projects.get", { params: { slug }, signal });
  if (project.active_deployment === null) return false;
  const look = async () => {
    const { replicas } = await client.call("metrics.get", { params: { slug }, signal });
    const ready = replicas.filter((replica) => replica.ready && replica.process === "web").length;
    say(`ready replicas: ${ready} of ${project.replicas}`);
    return ready >= project.replicas ? true : undefined;
  };
  return awaited(look, readyLimitMs, watch);
}

/**
 * Makes a call that the API refuses while another deployment is in progress. If that deployment is the platform's restart with changed
 * variables, which the user did not start, waits for its end and calls again. Otherwise throws the refusal.
 */
export async function afterRestart<T>(watch: Watch, slug: string, call: () => Promise<T>): Promise<T> {
  const { client, signal, say } = watch;
  const look = async () => {
    try {
      return { answer: await call() };
    } catch (fault) {
      if (!(fault instanceof ApiError && fault.code === "deploy_in_progress")) throw fault;
      const list = await client
        .call("deployments.list", { params: { slug }, signal })
        .catch(() => Promise.reject(fault));
      const coming = list.deployments.find((each) => !isDecided(each));
      if (coming !== undefined && coming.trigger !== "variables" && coming.trigger !== "restart") throw fault;
      say(`${slug} restarts at the moment; waiting for it`);
      return undefined;
    }
  };
  return (await awaited(look, deploymentLimitMs, watch)).answer;
}

async function awaited<T>(look: () => Promise<T | undefined>, timeoutMs: number, { signal }: Watch): Promise<T> {
  const end = await until(look, { timeoutMs, firstMs: 300, atMostMs: 1000, signal });
  signal.throwIfAborted();
  if (end !== undefined) return end;
  throw new ConnectionError("timeout", "The work takes longer than this call waits. It continues in the background.", {
    hint: "Look at the project later.",
  });
}
