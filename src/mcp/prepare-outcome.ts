import { ConnectionError, type Client } from "../contract/client.ts";
import type { Row } from "../contract/table.ts";
import { backupStates, buildStates, isDecided, isOfBuild } from "../contract/states.ts";
import { until } from "../kit/until.ts";
import { awaitServing, watchVariables } from "../client/outcomes.ts";
import type { Session } from "./session.ts";

interface Begun {
  readonly document: unknown;
  readonly params: Readonly<Record<string, string>>;
}

/** Prepares to wait for the outcome of a call. Run it before the call, then pass the call's response to the returned function. */
export async function prepareOutcome(
  session: Session,
  row: Row,
  params: Begun["params"],
): Promise<(document: unknown) => Promise<unknown>> {
  const slug = params["slug"] as string;
  if (row.name.startsWith("env.")) {
    const deployed = await watchVariables(session, slug);
    return async (changed) => ({ ...(changed as object | null), deployment: await deployed() });
  }
  if (row.name === "projects.undelete")
    return async (project) => ({ project, serving: await awaitServing(session, slug) });
  return (document) => awaitOutcome(session, row, { document, params });
}

// A build may take 15 minutes.
const outcomeLimitMs = 20 * 60_000;

/** Waits for a build's deployment or a backup, and returns it. Throws `ConnectionError` if that takes too long. */
async function awaitOutcome(session: Session, row: Row, begun: Begun): Promise<unknown> {
  const look = row.name === "backups.create" ? backupEnd(session, begun) : deploymentEnd(session, row, begun);
  const { signal } = session;
  const end = await until(look, { timeoutMs: outcomeLimitMs, firstMs: 300, atMostMs: 2000, signal });
  signal.throwIfAborted();
  if (end !== undefined) return end;
  throw new ConnectionError("timeout", "The work takes longer than this call waits. It continues in the background.", {
    hint: "Look at the build or the backup later.",
  });
}

function backupEnd({ client, say, signal }: Session, { document }: Begun): () => Promise<unknown> {
  const { id } = document as { id: string };
  return async () => {
    const backup = await client.call("backups.get", { params: { id }, signal });
    const { operation } = backup;
    if (operation !== null) say(`${operation.phase}, ${operation.bytes_done} bytes`);
    return backupStates[backup.status].length === 0 ? backup : undefined;
  };
}

function deploymentEnd(session: Session, row: Row, { document, params }: Begun): () => Promise<unknown> {
  const { client, say, signal } = session;
  const { build_id: id, preview } = document as { build_id: string; preview?: { slug: string } | null };
  const slug = preview?.slug ?? (params["slug"] as string);
  const into = preview === undefined || preview === null ? {} : { preview };
  return async () => {
    const build = await client.call("builds.get", { params: { id }, signal });
    if (buildStates[build.status].length > 0) return void say(`build ${build.number} is ${build.status}`);
    if (build.status !== "succeeded") return { build, ...into };
    const deployment = await deploymentOf(client, slug, id);
    if (deployment === undefined) return undefined;
    say(`deployment ${deployment.number} is ${deployment.status}`);
    if (!isDecided(deployment)) return undefined;
    if (row.name === "deployments.rehearse") {
      const asked = { params: { slug, number: String(deployment.number) }, signal };
      return { build, deployment, ...(await client.call("deployments.rehearsal", asked)) };
    }
    // A failed deployment's build has the same failure.
    const { failure, ...succeeded } = build;
    return { build: deployment.failure === null ? { ...succeeded, failure } : succeeded, deployment, ...into };
  };
}

async function deploymentOf(client: Client, slug: string, buildId: string) {
  const { deployments } = await client.call("deployments.list", { params: { slug } });
  return deployments.find((one) => one.build_id === buildId && isOfBuild(one.trigger));
}
