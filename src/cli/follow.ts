import { setTimeout as sleep } from "node:timers/promises";
import { ApiError, ConnectionError, type Answer, type Client } from "../contract/client.ts";
import { buildStates, deploymentStates } from "../contract/states.ts";
import { until } from "../kit/until.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failures.ts";

export type Build = Answer<"builds.get">;
export type Deployment = Answer<"deployments.list">["deployments"][number];

const pauseMs = 500;
// A build may take 15 min, waiting for its turn and starting some more.
const buildLimitMs = 40 * 60_000;
const deploymentLimitMs = 10 * 60_000;

/** Hands on a build's log until it is complete, then waits for the build's end. A restart of the platform in between is borne. */
export async function followBuild(
  ctx: CliContext,
  client: Client,
  id: string,
  write: (text: string) => void,
): Promise<Build> {
  const end = Date.now() + buildLimitMs;
  let offset = 0;
  for (;;) {
    const part = await patiently(ctx, () =>
      client.call("builds.logs", { params: { id }, query: { offset }, signal: ctx.signal }),
    );
    write(part.log);
    offset = part.next_offset;
    if (part.complete) break;
    if (Date.now() > end) throw tooLong("The build");
    if (part.log === "") await sleep(pauseMs, undefined, { signal: ctx.signal });
  }
  return awaitBuild(ctx, client, id);
}

/** Waits until the deployment of a build is decided. Resolves with it, whether it is active or failed. */
export async function awaitDeployment(
  ctx: CliContext,
  client: Client,
  slug: string,
  build: Build,
): Promise<Deployment> {
  const decided = await until(
    async () => {
      const list = await patiently(ctx, () =>
        client.call("deployments.list", { params: { slug }, signal: ctx.signal }),
      );
      // Newest first; a rollback to the same build made earlier has a retired or active row too, so only what came after the build counts.
      const found = list.deployments.find(
        (row) => row.build_id === build.id && row.trigger !== "rollback" && row.trigger !== "variables",
      );
      return found !== undefined && isDecided(found) ? found : undefined;
    },
    { timeoutMs: deploymentLimitMs, firstMs: 200, atMostMs: 2 * pauseMs, signal: ctx.signal },
  );
  ctx.signal.throwIfAborted();
  if (decided === undefined) throw tooLong("The deployment");
  return decided;
}

/** Repeats a read as long as the platform is only away for a moment. */
export async function patiently<T>(ctx: CliContext, read: () => Promise<T>): Promise<T> {
  let last: unknown;
  const answer = await until(
    async () => {
      try {
        return { value: await read() };
      } catch (fault) {
        if (!isPassing(fault)) throw fault;
        last = fault;
        return undefined;
      }
    },
    { timeoutMs: patienceMs, firstMs: 200, atMostMs: 2000, signal: ctx.signal },
  );
  ctx.signal.throwIfAborted();
  if (answer === undefined) throw last;
  return answer.value;
}

async function awaitBuild(ctx: CliContext, client: Client, id: string): Promise<Build> {
  const build = await until(
    async () => {
      const now = await patiently(ctx, () => client.call("builds.get", { params: { id }, signal: ctx.signal }));
      return buildStates[now.status].length === 0 ? now : undefined;
    },
    { timeoutMs: deploymentLimitMs, firstMs: 100, atMostMs: pauseMs, signal: ctx.signal },
  );
  ctx.signal.throwIfAborted();
  if (build === undefined) throw tooLong("The build");
  return build;
}

function isDecided({ status }: Deployment): boolean {
  return status === "active" || deploymentStates[status].length === 0;
}

/** A platform that restarts is back well within this. */
export const patienceMs = 60_000;

/** Whether asking again in a moment may help. */
export function isPassing(fault: unknown): boolean {
  if (fault instanceof ConnectionError) return fault.kind !== "unexpected_answer";
  return fault instanceof ApiError && (fault.status === 503 || fault.status === 429);
}

function tooLong(what: string): CliError {
  return new CliError("unavailable", "timeout", {
    message: `${what} takes too long to wait for.`,
    hint: "It goes on; `berth deployments` shows how it ends.",
  });
}
