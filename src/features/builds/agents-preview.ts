import type { Tx } from "../../store/database.ts";
import type { Context, RefusalText } from "../context.ts";

/** The refusal of a deploy by a token in approval mode, in a project whose agents deploy to previews only. */
export const agentsPreview = {
  error: "In this project, tokens in approval mode deploy to previews only.",
  hint: "Make one (`berth preview create <branch> --from-live`), change that project's source, and ask a person to let it go live: `berth preview promote <branch>`.",
};

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
