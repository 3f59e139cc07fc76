import type { Answer } from "../../contract/client.ts";
import type { Tone } from "../ui/status.tsx";

export type OverviewProject = Answer<"overview.get">["projects"][number];

interface Stand {
  readonly tone: Tone;
  readonly word: string;
}

const busy = ["pending", "starting"];

/** Returns a project's state as one word. */
export function standOf(project: OverviewProject): Stand {
  const { state, active_deployment: active, last_deployment: last, replicas, attention } = project;
  if (state === "deleted") return { tone: "off", word: "Deleted" };
  if (last !== null && busy.includes(last.status)) return { tone: "busy", word: "Deploying" };
  if (attention.includes("maintenance")) return { tone: "warn", word: "Maintenance" };
  if (active === null && last === null && !attention.includes("build_failed")) return { tone: "off", word: "Empty" };
  if (active === null) return { tone: "bad", word: "Failed" };
  if (replicas.ready === 0) return { tone: "bad", word: "Down" };
  if (attention.includes("crashing")) return { tone: "bad", word: "Crashing" };
  if (replicas.ready < replicas.wanted) return { tone: "warn", word: "Degraded" };
  return { tone: "ok", word: "Live" };
}

export const attentionTexts: Record<OverviewProject["attention"][number], string> = {
  deploy_failed: "The last deployment failed",
  build_failed: "The last build failed",
  crashing: "The application keeps crashing",
  replicas_missing: "Not all replicas run",
  database_failed: "The database does not run",
  backup_failed: "The last backup failed",
  maintenance: "Visitors get the maintenance page",
  storage_over_limit: "Storage is over its limit",
  database_over_limit: "The database is over its limit",
  images_over_limit: "Images are over their limit",
  hostname_lost: "A hostname points elsewhere",
  certificate_failed: "A hostname has no valid certificate",
  certificate_ending: "A certificate ends soon",
};
