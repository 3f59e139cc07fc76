import type { Answer } from "../../contract/client.ts";
import type { Health } from "../../contract/health.ts";
import type { Tone } from "../ui/text.tsx";

export type OverviewProject = Answer<"overview.get">["projects"][number];

const words: Readonly<Record<Health["state"], readonly [Tone, string]>> = {
  empty: ["off", "Empty"],
  deploying: ["busy", "Deploying"],
  healthy: ["ok", "Healthy"],
  degraded: ["warn", "Degraded"],
  crashing: ["bad", "Crashing"],
  down: ["bad", "Down"],
  asleep: ["off", "Asleep"],
  maintenance: ["warn", "Maintenance"],
};

export function standOf({ health: { state } }: { readonly health: Health }): {
  readonly tone: Tone;
  readonly word: string;
} {
  const [tone, word] = words[state];
  return { tone, word };
}

const attentionTexts: Record<OverviewProject["attention"][number], string> = {
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
  hostname_waiting: "A hostname waits for its DNS records",
  hostname_lost: "A hostname points elsewhere",
  certificate_failed: "A hostname has no valid certificate",
  certificate_ending: "A certificate ends soon",
};

/** What the health's sentence says already. */
const partsOfHealth: readonly string[] = ["crashing", "replicas_missing", "maintenance", "database_failed"];

const bad: readonly string[] = ["degraded", "crashing", "down", "maintenance"];

/** Returns what needs attention, the project's health first, each once. */
export function troublesOf({ health, attention, active_deployment }: OverviewProject): readonly string[] {
  const isBad = bad.includes(health.state);
  // Where nothing serves, the sentence names what failed.
  const said = active_deployment === null ? [...partsOfHealth, "deploy_failed", "build_failed"] : partsOfHealth;
  const others = attention.filter((each) => !isBad || !said.includes(each));
  return [...(isBad ? [health.sentence] : []), ...others.map((each) => attentionTexts[each])];
}

export function seenIn(data: Answer<"overview.get"> | undefined, id: string): OverviewProject | undefined {
  return data && [...data.projects, ...data.previews].find((each) => each.id === id);
}
