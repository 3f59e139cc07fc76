import { setTimeout as sleep } from "node:timers/promises";
import { limits } from "../../contract/limits.ts";
import type { Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import { pageOf } from "../../kit/page.ts";
import type { Context, Handlers, HandlerPlatform } from "../context.ts";
import { lockProject } from "../projects/projects.ts";
import * as queries from "./queries.ts";

export const runs: Handlers<"runs"> = {
  async list(ctx, { query }) {
    const rows = await queries.listRuns(ctx.tx, ctx.project.key, query);
    const { shown, next_cursor } = pageOf(rows, query.limit, ({ number }) => String(number));
    return { runs: shown, next_cursor };
  },

  async create(ctx, { body }) {
    const { key } = ctx.project;
    const { command, timeout_seconds, terminal } = body;
    const wait_seconds = terminal ? 0 : body.wait_seconds;
    await lockProject(ctx.tx, key);
    const found = await queries.runnableDeployment(ctx.tx, key, body.deployment);
    if (found === undefined) return refuseDeployment(ctx, body.deployment);
    if ((await queries.openRuns(ctx.tx, key)) >= limits.runs_open)
      return ctx.fail("conflict", {
        error: `${limits.runs_open} commands of this project have not ended yet.`,
        hint: "Wait until one has ended or cancel one.",
      });
    const deployment = { deployment_id: found.id, deployment: found.number };
    const wanted = { ...key, ...deployment, command, timeout_seconds, terminal, requested_by: ctx.caller.token_name };
    const { number } = await queries.insertRun(ctx.tx, { ...wanted, id: newId("run"), token_id: ctx.caller.token_id });
    await ctx.platform.wakeups.send(ctx.tx, "runs", key.project_id);
    // A command line may contain a secret, so it is stored only in the run's row, not in the activity.
    ctx.note({ target: `run ${number}`, detail: { number, deployment: found.number } });
    return { outcome: (signal) => awaitEnd(ctx, number, { seconds: wait_seconds, signal }) };
  },

  async get(ctx, { params, query }) {
    return (
      (await runWithOutput(ctx.platform, ctx.project.key, numberOf(params.number), query.offset)) ??
      ctx.fail("not_found")
    );
  },

  async terminal(ctx, { params }) {
    const { key } = ctx.project;
    const number = numberOf(params.number);
    const [run, owner] = [await queries.getRun(ctx.tx, key, number), await queries.terminalOwner(ctx.tx, key, number)];
    if (run === undefined || owner === undefined) return ctx.fail("not_found");
    if (!ctx.isUpgrade) return { run };
    if (owner.token_id !== ctx.caller.token_id)
      return ctx.fail("conflict", { error: "Another token requested this terminal." });
    if (run.status !== "queued")
      return ctx.fail("conflict", {
        error: "The terminal was already opened, or it expired before it was opened. Request a new one.",
      });
    const { terminals, wakeups, db } = ctx.platform;
    return ctx.tunnel((tunnel) => terminals.serve(run.id, tunnel, () => wakeups.send(db, "runs", key.project_id)));
  },

  async cancel(ctx, { params }) {
    const number = numberOf(params.number);
    const run = await queries.getRun(ctx.tx, ctx.project.key, number);
    if (run === undefined) return ctx.fail("not_found");
    ctx.note({ target: `run ${number}`, detail: { number }, silent: run.finished_at !== null });
    await queries.requestCancel(ctx.tx, ctx.project.key, number);
    await ctx.platform.wakeups.send(ctx.tx, "runs", ctx.project.id);
    return { run: (await queries.getRun(ctx.tx, ctx.project.key, number)) ?? run };
  },
};

type Key = Context<"runs.get">["project"]["key"];

const chunkBytes = 64 * 1024;
const pollEveryMs = 200;

/** Parses a run's number; returns 0, which no run has, for other text. */
function numberOf(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

function refuseDeployment(ctx: Context<"runs.create">, number: number | undefined): never {
  if (number === undefined)
    return ctx.fail("nothing_to_deploy", {
      error: "The project has no deployment yet, so there is no image to run a command in.",
    });
  return ctx.fail("nothing_to_deploy", {
    error: `There is no deployment ${number} with an image that still exists.`,
    hint: "GET /v1/projects/:slug/deployments lists the deployments.",
  });
}

async function runWithOutput(
  { db, ports }: HandlerPlatform,
  key: Key,
  number: number,
  offset: number,
): Promise<Result<"runs.get"> | undefined> {
  // Read the row before the log, so that the log of an ended run is complete.
  const run = await queries.getRun(db, key, number);
  if (run === undefined) return undefined;
  const { text, next_offset } = await ports.logStore.readBuild(run.id, offset, chunkBytes);
  const complete = run.finished_at !== null && (await ports.logStore.readBuild(run.id, next_offset, 1)).text === "";
  return { run, output: text, next_offset, complete };
}

/** Waits until the run has ended or the time is over, and returns it. A client that disconnects ends only the wait, not the run. */
async function awaitEnd(
  ctx: Context<"runs.create">,
  number: number,
  { seconds, signal }: { readonly seconds: number; readonly signal: AbortSignal },
): Promise<Result<"runs.create">> {
  const endMs = Date.now() + seconds * 1000;
  for (;;) {
    signal.throwIfAborted();
    const found = await runWithOutput(ctx.platform, ctx.project.key, number, 0);
    if (found === undefined) return ctx.fail("not_found");
    if (found.run.finished_at !== null || Date.now() >= endMs) return found;
    await sleep(pollEveryMs, undefined, { signal }).catch(() => {});
  }
}
