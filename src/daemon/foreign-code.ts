import type { Db } from "../store/database.ts";
import { StartRefused } from "./start-refused.ts";

/** Whether this machine may run the code of an organization. */
export type CodeAdmission = (organization: { readonly slug: string }) => boolean;

/**
 * Returns the rule for whose code may run. Without namespaces an application may read other tenants' data, so only the first organization
 * is admitted: its owner runs the machine.
 */
export function admitCode(isolation: readonly string[], allowUnisolated: boolean): CodeAdmission {
  const isForAll = allowUnisolated || isolation.includes("namespaces");
  return ({ slug }) => isForAll || slug === "main";
}

/** Throws `StartRefused` if this machine lacks isolation and an organization whose code is not admitted has a build here. */
export async function requireAdmittedCode(db: Db, admits: CodeAdmission): Promise<void> {
  const organizations = await db
    .selectFrom("organization")
    .select("slug")
    .where((of) =>
      of.exists(of.selectFrom("build").whereRef("build.org_id", "=", "organization.id").select("build.id")),
    )
    .execute();
  const refused = organizations.filter((organization) => !admits(organization)).map(({ slug }) => slug);
  if (refused.length === 0) return;
  throw new StartRefused(
    `This machine has no namespaces to isolate code, but it holds code of more than one organization (${refused.join(", ")}). ` +
      "Allow user namespaces (docs/operations.md, Isolation), or set BERTH_ALLOW_UNISOLATED=1 to run it without isolation.",
  );
}
