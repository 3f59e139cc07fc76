import { setTimeout as sleep } from "node:timers/promises";
import { ApiError, ConnectionError, type Answer, type Client } from "../contract/client.ts";
import { buildStates, isDecided, isOfBuild, shownStatus } from "../contract/states.ts";
import { until } from "../kit/until.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failures.ts";

export type Build = Answer<"builds.get">;
type LogPart = Answer<"builds.logs">;
export type Deployment = Answer<"deployments.list">["deployments"][number];

const pauseMs = 500;
// A build may take 15 min, plus waiting for its turn and starting.
const buildLimitMs = 40 * 60_000;
const deploymentLimitMs = 10 * 60_000;

/** Passes a build's log to `write` until it is complete, then waits for the build's end. Tolerates a restart of the platform. */
export async function followBuild(
  ctx: CliContext,
  client: Client,
  id: string,
  write: (text: string) => void,
): Promise<Build> {
  await readBuildLog(ctx, client, { id, follow: true, write });
  return awaitBuild(ctx, client, id);
}

/** Which build's log to read, how far, and where to write it. */
export interface LogReading {
  readonly id: string;
  /** Whether to wait for more until the log is complete; else reading stops at its current end. */
  readonly follow: boolean;
  /** Receives each part, and when its lines were written. */
  readonly write: (text: string, times: LogPart["times"]) => void;
}

/** Passes a build's log to `write` part by part, because a long log comes in several. Resolves to the last part. */
export async function readBuildLog(ctx: CliContext, client: Client, reading: LogReading): Promise<LogPart> {
  const { id, follow, write } = reading;
  const end = Date.now() + buildLimitMs;
  for (let offset = 0; ;) {
    const part = await patiently(ctx, () =>
      client.call("builds.logs", { params: { id }, query: { offset }, signal: ctx.signal }),
    );
    write(part.log, part.times);
    if (part.complete || (!follow && part.next_offset === offset)) return part;
    offset = part.next_offset;
    if (Date.now() > end) throw tooLong("The build");
    if (part.log === "") await sleep(pauseMs, undefined, { signal: ctx.signal });
  }
}

/** Returns the CLI's failure if the build or its deployment failed, else undefined. */
export function failureOf(build: Build): CliError | undefined {
  if (build.status !== "succeeded") return failed(`Build #${build.number}`, build);
  const { deployment } = build;
  return deployment === null ? undefined : failureOfDeployment({ ...deployment, rehearse_only: build.rehearse_only });
}

/** Returns the CLI's failure if the deployment failed or was superseded, else undefined. */
export function failureOfDeployment(row: Outcome & { readonly number: number }): CliError | undefined {
  const isBad = row.failure !== null || ["failed", "superseded"].includes(shownStatus(row));
  return isBad ? failed(`Deployment #${row.number}`, row) : undefined;
}

type Outcome = Pick<Build | Deployment, "status" | "failure"> & { readonly rehearse_only?: boolean };

function failed(what: string, { status, failure }: Outcome): CliError {
  if (failure === null)
    return new CliError("deploymentFailed", "deployment_failed", {
      message: `${what} was ${status} and did not go live.`,
      hint: "The deployment before it still serves.",
    });
  const traffic = failure.stage === "switch" ? "" : " No traffic was switched.";
  const message = `${what} failed in the stage ${failure.stage}: ${failure.summary}${traffic}`;
  return new CliError("deploymentFailed", failure.code, {
    message,
    hint: failure.hint === "" ? undefined : failure.hint,
  });
}

/** Waits until the deployment of a build is active or has failed, and returns it. */
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
      // Newest first. Rollbacks to the same build have rows with its id too, so only deployments that the build itself caused count.
      const found = list.deployments.find((row) => row.build_id === build.id && isOfBuild(row.trigger));
      return found !== undefined && isDecided(found) ? found : undefined;
    },
    { timeoutMs: deploymentLimitMs, firstMs: 200, atMostMs: 2 * pauseMs, signal: ctx.signal },
  );
  ctx.signal.throwIfAborted();
  if (decided === undefined) throw tooLong("The deployment");
  return decided;
}

/** Retries a read while the platform is temporarily unavailable. */
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

export async function awaitBuild(ctx: CliContext, client: Client, id: string): Promise<Build> {
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

/** A restart of the platform takes much less than this. */
export const patienceMs = 60_000;

/** Returns whether retrying in a moment may help. */
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
