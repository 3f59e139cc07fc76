import type { Tx } from "../../store/database.ts";
import { agentBranch, isBranchName } from "../previews/previews.ts";
import type { Context, RefusalText } from "../context.ts";

/** The refusal of a deploy by a token in approval mode, in a project whose agents deploy to previews only. */
export const agentsPreview = {
  error: "In this project, tokens in approval mode deploy to previews only.",
  hint: "Write files to the project, which go to a preview, or push another branch. A person lets it go live: `berth preview promote <branch>`.",
};

type Choosing = Pick<Context<"builds.change">, "project" | "caller"> & {
  readonly fail: (code: "conflict", text: RefusalText) => never;
};

/** Returns the branch whose preview gets a change; null: the project itself gets it. */
export function chooseBranch(ctx: Choosing, branch: string | undefined): string | null {
  const { project, caller } = ctx;
  const isAgents = caller.approval_mode && project.agents === "preview" && project.preview_of === null;
  if (branch === undefined && !isAgents) return null;
  const chosen = branch ?? agentBranch(caller.token_name);
  requirePreviewBranch(ctx, chosen);
  return chosen;
}

/** Refuses a branch that cannot have a preview. */
export function requirePreviewBranch({ project, fail }: Omit<Choosing, "caller">, branch: string): void {
  if (project.preview_of !== null)
    fail("conflict", { error: "The project is a preview itself.", hint: "Leave the branch out." });
  if (project.previews === null && project.agents === "deploy")
    fail("conflict", {
      error: "The project's previews are off.",
      hint: `Name the branches that get one: \`berth projects settings ${project.slug} --previews '*'\`.`,
    });
  if (branch === (project.deploy_branch ?? "main"))
    fail("conflict", { error: `${branch} is the branch that deploys.`, hint: "Give another branch." });
  if (!isBranchName(branch)) fail("conflict", { error: `${JSON.stringify(branch)} is no name of a git branch.` });
}

type Deploying = Pick<Context<"builds.change">, "project" | "caller"> & {
  readonly fail: (code: "forbidden", text: RefusalText) => never;
};

/** Refuses a deploy that a person has to make by promoting a preview, or another change of what serves. */
export function requireMayDeploy({ project, caller, fail }: Deploying, text: RefusalText = agentsPreview): void {
  if (caller.approval_mode && project.agents === "preview" && project.preview_of === null) fail("forbidden", text);
}

/** Returns whether a token in approval mode asked for a deployment's build, and no person let it go live. */
export async function isUnseen(tx: Tx, orgId: string, deploymentId: string): Promise<boolean> {
  const row = await tx
    .selectFrom("deployment")
    .innerJoin("build", "build.id", "deployment.build_id")
    .select("build.id")
    .where("deployment.org_id", "=", orgId)
    .where("deployment.id", "=", deploymentId)
    .where("build.copies_data", "=", true)
    .where("build.promoted_from", "is", null)
    .executeTakeFirst();
  return row !== undefined;
}
