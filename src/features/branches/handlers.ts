import type { Result } from "../../contract/routes.ts";
import { instantOf } from "../../kit/instant.ts";
import { awaitOutcome } from "../await-outcome.ts";
import type { Context, Handlers } from "../context.ts";
import { deploymentCreatedAt } from "../deployments/deployments.ts";
import { requestBranch } from "./branches.ts";
import { listBranches, markDeleting, selectBranch, type BranchRow } from "./queries.ts";

export const branches: Handlers<"branches"> = {
  async list(ctx) {
    return { branches: (await listBranches(ctx.tx, ctx.project.key)).map(present) };
  },

  async get(ctx, { params }) {
    return present((await selectBranch(ctx.tx, ctx.project.key, params.branch)) ?? ctx.fail("not_found"));
  },

  async create(ctx, { body }) {
    const { name, mask } = body;
    const at = await momentOf(ctx, body);
    const asked = await requestBranch(ctx.platform, ctx.tx, {
      ...{ ...ctx.project.key, name, at, isMasked: mask, minutes: body.ttl_minutes },
      used_by: null,
    });
    if (asked.outcome === "refused") return ctx.fail(asked.code, asked.text);
    // What a masked branch shows is meant for everybody who may make one.
    ctx.note({ target: name, detail: { shows: at?.toISOString() ?? "now", masked: mask }, losesNothing: mask });
    return { outcome: (signal) => made(ctx, { id: asked.id, signal }, name) };
  },

  async delete(ctx, { params }) {
    const { key } = ctx.project;
    const branch = (await selectBranch(ctx.tx, key, params.branch)) ?? ctx.fail("not_found");
    await markDeleting(ctx.tx, key.org_id, branch.id);
    await ctx.platform.wakeups.send(ctx.tx, "branches", branch.id);
    ctx.note({ target: branch.name, resource: branch.id });
  },
};

type Creating = Context<"branches.create">;

async function momentOf(
  ctx: Creating,
  {
    at,
    before_deployment: number,
  }: { readonly at?: string | undefined; readonly before_deployment?: number | undefined },
): Promise<Date | null> {
  if (at !== undefined) return new Date(instantOf(at, ctx.now));
  if (number === undefined) return null;
  const createdAt = await deploymentCreatedAt(ctx.tx, ctx.project.key, number);
  return createdAt === undefined
    ? ctx.fail("not_found", { error: `The project has no deployment ${number}.` })
    : new Date(createdAt);
}

/** Longer copies are announced instead of awaited. */
const patienceSeconds = 5;

/** Waits until the branch is ready, or until it is known that this takes long. */
async function made(
  ctx: Creating,
  awaited: { readonly id: string; readonly signal: AbortSignal },
  name: string,
): Promise<Result<"branches.create">> {
  const branch = await awaitOutcome(ctx.platform.wakeups, awaited, async () => {
    const row = await selectBranch(ctx.platform.db, ctx.project.key, name);
    if (row?.id !== awaited.id) return ctx.fail("conflict", { error: "The branch was deleted meanwhile." });
    return row.status === "copying" && (row.expected_seconds ?? 0) <= patienceSeconds ? undefined : row;
  });
  const { problem_code, problem } = branch;
  if (branch.status !== "failed") return present(branch);
  return ctx.fail(codes.find((code) => code === problem_code) ?? "unavailable", { error: problem ?? "" });
}

const codes = [
  ...["target_outside_window", "wal_missing", "backup_damaged", "copy_too_large", "mask_failed"],
  ...["storage_full", "conflict"],
] as const;

function present(row: BranchRow): Result<"branches.get"> {
  const { mask_commit, access, problem_code, problem, id: _, ...shown } = row;
  return {
    ...shown,
    expires_at: row.used_by === null ? row.expires_at : null,
    masked: mask_commit !== null,
    read_only: access === "read_only",
    failure: problem_code === null ? null : { code: problem_code, summary: problem ?? "" },
  };
}
