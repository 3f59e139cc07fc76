import { registryOf } from "../../contract/image-name.ts";
import { pageOf } from "../../kit/page.ts";
import type { Tx } from "../../store/database.ts";
import * as builds from "../builds/builds.ts";
import { isBranchName } from "../previews/previews.ts";
import { Refused, type Context, type Handlers, type RefusalText } from "../context.ts";
import { requireRoomForBuild } from "../disk/disk.ts";
import { hasReleasedSince, rehearsalOf } from "../rehearsals/rehearsals.ts";
import { privateHostProblem } from "../registries/registries.ts";
import { compareDeployments, compareLines } from "./compare.ts";
import { deploymentOutcome, rollBack, scaleProject, textOfNothing } from "./deployments.ts";
import { comingDeployment, deployedCommit, getDeployment, listDeployments, selectNumbered } from "./queries.ts";

export const deployments: Handlers<"deployments"> = {
  async list(ctx, { query }) {
    const rows = await listDeployments(ctx.tx, ctx.project.org_id, ctx.project.id, query);
    const { shown, next_cursor } = pageOf(rows, query.limit, ({ number }) => String(number));
    return { deployments: shown, next_cursor };
  },

  async compare(ctx, { query }) {
    return (await compareDeployments(ctx, query)) ?? ctx.fail("not_found", textOfNoPair);
  },

  async lines(ctx, { query }) {
    if (query.to !== undefined && query.build !== undefined)
      return ctx.fail("invalid_request", { error: "Give either `to` or `build`." });
    return (await compareLines(ctx, query)) ?? ctx.fail("not_found", query.build ? textOfNoBuild : textOfNoPair);
  },

  async rehearsal(ctx, { params }) {
    const number = Number(params.number);
    const found = Number.isSafeInteger(number) ? await rehearsalOf(ctx.tx, { ...ctx.project.key, number }) : undefined;
    return found === undefined ? ctx.fail("not_found") : { rehearsal: found };
  },

  async rehearse(ctx, { body }) {
    builds.requireMayDeploy(ctx);
    await requireRoomForBuild(ctx);
    const { files, delete: removed, ...named } = body;
    const hasFiles = files.length + removed.length > 0;
    if (Object.values({ ...named, ...(hasFiles && { files }) }).filter((each) => each !== undefined).length > 1)
      return ctx.fail("invalid_request", { error: "Give only one of `branch`, `deployment` and files." });
    if (await comingDeployment(ctx.tx, ctx.project.org_id, ctx.project.id)) return ctx.fail("deploy_in_progress");
    if (hasFiles) return rehearseFiles(ctx, { content: builds.givenFiles(files), removed });
    const { commit, branch, message, author } = await rehearsedSource(ctx, named);
    const { token_id, token_name: requested_by } = ctx.caller;
    const build = await builds.requestBuild(ctx.tx, ctx.platform.wakeups, {
      ...{ ...ctx.project.key, origin: "push", rehearse_only: true, commit, branch, message, author },
      ...{ old_commit: null, lease_owner: null, requested_by, token_id },
    });
    ctx.note({ target: build.id, detail: { commit } });
    return { outcome: async () => ({ build_id: build.id, commit }) };
  },

  async create(ctx, { body }) {
    builds.requireMayDeploy(ctx);
    if (body.image !== undefined) return deployImage(ctx, body.image, body.commit);
    const { org_id, project_id } = ctx.project.key;
    await requireRoomForBuild(ctx);
    const source = await builds.newestSource(ctx.tx, org_id, project_id, body.commit);
    if (source === undefined) return ctx.fail("nothing_to_deploy");
    if (await comingDeployment(ctx.tx, org_id, project_id)) return ctx.fail("deploy_in_progress");
    const { commit, branch, message, author } = source;
    const wanted = {
      ...ctx.project.key,
      origin: "redeploy",
      commit,
      branch,
      message,
      author,
      old_commit: null,
      lease_owner: null,
    } as const;
    const { token_id, token_name: requested_by, approval_mode: copies_data } = ctx.caller;
    const build = await builds.requestBuild(ctx.tx, ctx.platform.wakeups, {
      ...wanted,
      requested_by,
      token_id,
      copies_data,
    });
    ctx.note({ target: build.id, detail: { commit, ...(await builds.releaseReach(ctx.tx, ctx.project.key)) } });
    return { outcome: async () => ({ build_id: build.id, commit }) };
  },

  async rollback(ctx, { body }) {
    const made = await rollBack(ctx.platform, ctx.tx, ctx.project.key, body.deployment);
    switch (made.outcome) {
      case "project_deleted":
      case "org_suspended":
        return ctx.fail(made.outcome);
      case "in_progress":
        return ctx.fail("deploy_in_progress");
      case "nothing":
        return ctx.fail("nothing_to_roll_back", textOfNothing(body.deployment));
      case "made": {
        const { from, to, number } = made;
        if (await builds.isUnseen(ctx.tx, ctx.project.org_id, made.id)) builds.requireMayDeploy(ctx, textOfUnseen(to));
        const changed_variables = [...made.changed_variables];
        if (changed_variables.length > 0) builds.requireMayDeploy(ctx, textOfVariables(to, changed_variables));
        if (ctx.caller.approval_mode && (await bringsOtherMask(ctx, made)))
          builds.requireMayDeploy(ctx, textOfMask(to));
        const newer_branch = await newerBranch(ctx.tx, ctx.project, made.id);
        ctx.note({ target: made.id, detail: { number, from, to, branch: newer_branch, changed_variables } });
        const released = await hasReleasedSince(ctx.tx, ctx.project.key, to);
        const outcome = async (signal: AbortSignal) => ({
          ...{ status: "rolled_back" as const, from, to },
          deployment: await deploymentOutcome(ctx, made.id, { signal, unhealthy: "previous_unhealthy" }).catch(
            (error: unknown) => {
              throw released && error instanceof Refused ? mayNeedData(error, to) : error;
            },
          ),
          changed_variables,
          newer_branch,
        });
        return { outcome };
      }
    }
  },

  scale: (ctx, { body }) => scaleProject(ctx, body.replicas),
};

function mayNeedData({ code, more }: Refused, to: number): Refused {
  const hint = `A release command has run since deployment ${to}, so its code may need the data of then: \`berth rollback ${to} --with-data\` brings back both.`;
  return new Refused(code, { ...more, hint: `${more.hint ?? ""} ${hint}`.trim() });
}

function rehearseFiles(ctx: Context<"deployments.rehearse">, sent: Pick<builds.Uploaded, "content" | "removed">) {
  const uploaded = { ...sent, keepsOthers: true, message: "Rehearse changed files", rehearse_only: true };
  const outcome = async () => {
    const { build_id, commit } = await builds.buildUpload(ctx, uploaded);
    return { build_id, commit };
  };
  return { changesLate: true as const, outcome };
}

/** Returns what to rehearse: the head of a branch, what was deployed under a number, or the newest commit that went live. */
async function rehearsedSource(
  { tx, project, platform, fail }: Context<"deployments.rehearse">,
  { branch, deployment }: { readonly branch?: string | undefined; readonly deployment?: number | undefined },
) {
  const { org_id, project_id } = project.key;
  if (branch !== undefined) {
    const { repositories } = platform.ports;
    const known = isBranchName(branch) && (await repositories.exists(project_id));
    const commit = known ? await repositories.resolve(project_id, `refs/heads/${branch}`) : null;
    const hint = "Push it first: without a preview of its own, a branch is only stored.";
    return commit === null
      ? fail("nothing_to_deploy", { error: `The repository has no branch ${branch}.`, hint })
      : { commit, branch, message: `Rehearse ${branch}`, author: null };
  }
  const commit =
    deployment === undefined
      ? undefined
      : (await selectNumbered(tx, { org_id, project_id, number: deployment }))?.commit;
  if (deployment !== undefined && commit === undefined)
    return fail("nothing_to_deploy", {
      error: `There is no deployment ${deployment}.`,
      hint: "The list of deployments has their numbers.",
    });
  return (await builds.newestSource(tx, org_id, project_id, commit)) ?? fail("nothing_to_deploy");
}

const textOfNoBuild = {
  error: "There is no such build, or no deployment to compare it with.",
  hint: "Give the numbers of a build and of a deployment. By default the build is compared with the deployment that serves.",
};

const textOfNoPair = {
  error: "One of the two deployments does not exist.",
  hint: "Give two deployment numbers. By default the newest deployment is compared with the previous one that served.",
};

const textOfUnseen = (number: number): RefusalText => ({
  error: `A token in approval mode made deployment ${number}, and in this project a person decides what of such tokens goes live.`,
  hint: "Name a deployment that a person made or promoted, or ask a person to roll back.",
});

/** Earlier variables may be an agent's, which a person has taken away since. */
const textOfVariables = (number: number, keys: readonly string[]): RefusalText => ({
  error: `A rollback to deployment ${number} would change variables (${keys.join(", ")}), and in this project a person decides about those.`,
  hint: "Name a deployment with the variables of now, or ask a person to roll back.",
});

const textOfMask = (number: number): RefusalText => ({
  error: `Deployment ${number} masks branches of the database in another way, and in this project a person decides what agents see of the data.`,
  hint: "Name a deployment with the mask of now, or ask a person to roll back.",
});

async function bringsOtherMask(
  { tx, project, platform }: Context<"deployments.rollback">,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<boolean> {
  const { key, root } = project;
  const maskOf = async (number: number) => {
    const commit = (await selectNumbered(tx, { ...key, number }))?.commit ?? "";
    return (await builds.readMask(platform.ports.repositories, { ...key, commit, root }))?.sql;
  };
  const [present, earlier] = [await maskOf(from), await maskOf(to)];
  return earlier !== undefined && earlier !== present;
}

/**
 * Deploys a ready image by building a Dockerfile that starts from it. So the image is pulled, checked, logged, deployed and rolled back
 * like any build, and its commit records what is served.
 */
async function deployImage(ctx: Context<"deployments.create">, image: string, commit: string | undefined) {
  if (commit !== undefined) return ctx.fail("invalid_request", { error: "Give either `commit` or `image`." });
  const { ports, settings } = ctx.platform;
  const problem = privateHostProblem(registryOf(image), settings.privateRegistries);
  if (problem !== undefined)
    return ctx.fail("invalid_request", { error: problem, details: [{ path: "image", message: problem }] });
  await builds.requireUpload(ctx);
  const { root } = ctx.project;
  const path = root === null ? "Dockerfile" : `${root}/Dockerfile`;
  const files = [{ path, content: Buffer.from(`# The image that is deployed as it is.\nFROM ${image}\n`) }];
  const findRuntime = async () => (await ports.runtime.describe()).name.split(",").find((name) => name !== "process");
  const look = async () => {
    if ((await findRuntime()) === undefined) ctx.fail("images_not_supported");
  };
  const outcome = async () => {
    const runtime = (await findRuntime()) ?? ctx.fail("images_not_supported");
    const { build_id, commit: made } = await builds.buildUpload(ctx, {
      ...{ content: { files }, removed: [], keepsOthers: false, message: `Image ${image}`, runtime },
    });
    return { build_id, commit: made };
  };
  return { changesLate: true as const, look, outcome };
}

/** Returns the branch that deploys when the newest of its commits that went live is not the deployment's; null when it is, or none did. */
export async function newerBranch(
  tx: Tx,
  project: { readonly key: { org_id: string; project_id: string }; readonly deploy_branch: string | null },
  deploymentId: string,
): Promise<string | null> {
  const { org_id, project_id } = project.key;
  const branch = project.deploy_branch ?? "main";
  const rolledBack = await getDeployment(tx, org_id, deploymentId);
  const newest = await deployedCommit(tx, org_id, project_id, branch);
  return newest === undefined || newest.commit === rolledBack?.commit ? null : branch;
}
