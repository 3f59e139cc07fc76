import { rehearsalLines, type RehearsalReport } from "../../contract/rehearsal.ts";
import { askForApproval, consumeApproval, type GatedRequest } from "../../features/approvals/approvals.ts";
import { askerOf, lossesOf, promotionSeen, sameLosses } from "../../features/rehearsals/rehearsals.ts";
import type { Failure } from "../../ports/failure.ts";
import { requireLease } from "../../store/leases.ts";
import { releaseFailure } from "./release-failures.ts";
import type { Release } from "./start-processes.ts";

/**
 * Asks a person before a token in approval mode destroys data: tables, columns, or more rows than the settings allow. Returns undefined
 * when nothing of that kind is lost, or a person has approved exactly this loss by this commit.
 */
export async function askForLosses(release: Release, report: RehearsalReport): Promise<Failure | undefined> {
  const { platform, deployment, lease, log } = release;
  const losses = lossesOf(report, platform.settings.rehearsalLosses);
  if (losses.length === 0) return undefined;
  const told = rehearsalLines({ ...report, tables: losses, further_tables: 0 }).join("; ");
  const asker = await askerOf(platform.db, deployment);
  if (asker === undefined) return needsHuman(`The release command would remove data: ${told}.`, noToken);
  const seen = await promotionSeen(platform.db, deployment);
  if (seen !== undefined && isSame(losses, lossesOf(seen.report, platform.settings.rehearsalLosses)))
    return void log.detail(`Approved by a person, with the rehearsal: ${seen.id}`);
  const request = requestOf(release, { asker, report, losses });
  await requireLease(platform.db, lease);
  const now = platform.clock.now();
  const id = await platform.db.transaction().execute((tx) => consumeApproval(tx, request, now));
  if (id !== undefined) return void log.detail(`Approved by a person: ${id}`);
  const addresses = { controlUrl: platform.controlUrl() };
  const asked = await askForApproval({ ...platform, addresses }, request);
  if (asked.outcome === "full")
    return needsHuman(`The release command would remove data: ${told}. Too many requests wait for approval.`, noToken);
  if (asked.outcome === "denied")
    return releaseFailure("release", "approval_denied", `A person denied this (${asked.approval.id}): ${told}.`);
  return needsHuman(
    `The release command would remove data: ${told}. A person must approve it: ${asked.approval.id}. Production was not touched.`,
    `Wait for the decision (GET /v1/approvals/${asked.approval.id}?wait=60), then deploy the same commit again within an hour.`,
  );
}

const isSame = (...[a, b]: readonly (readonly Losing["losses"][number][])[]) =>
  JSON.stringify(sameLosses(a ?? [])) === JSON.stringify(sameLosses(b ?? []));

const noToken = "Let a person deploy whose token is not in approval mode.";

function needsHuman(summary: string, hint: string): Failure {
  return { ...releaseFailure("release", "approval_required", summary), hint };
}

interface Losing {
  readonly asker: NonNullable<Awaited<ReturnType<typeof askerOf>>>;
  readonly report: RehearsalReport;
  readonly losses: ReturnType<typeof lossesOf>;
}

function requestOf({ deployment }: Release, { asker, report, losses }: Losing): GatedRequest {
  const { org_id, project_id, slug, commit, number } = deployment;
  return {
    caller: { org_id, ...asker },
    ...{ method: "POST", route: "deployments.create", path: `/v1/projects/${slug}/deployments` },
    ...{ resources: [project_id], params: {}, query: {}, body: { commit, loses: sameLosses(losses) } },
    ...{ secrets: [], summary: "Deploy a commit whose release command removes data", project_id, target: commit },
    detail: { commit, deployment: number, rehearsal: rehearsalLines(report).slice(0, 100) },
  };
}
