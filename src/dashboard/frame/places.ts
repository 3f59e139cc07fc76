import { Activity, Building2, Code, HeartPulse, KeyRound, LayoutGrid, Server, ShieldCheck } from "lucide-react";

/** The pages beside a project's, in the order of the sidebar; `key` follows `g`. */
export const sections: readonly Section[] = [
  { to: "/", label: "Overview", icon: LayoutGrid, key: "o" },
  { to: "/approvals", label: "Approvals", icon: ShieldCheck, key: "p" },
  { to: "/activity", label: "Activity", icon: Activity, key: "a" },
  { to: "/access", label: "Access", icon: KeyRound, key: "k" },
  { to: "/api", label: "API", icon: Code, key: "i" },
  { to: "/operator", label: "Platform", icon: Server, key: "m", operator: true },
  { to: "/operator/organizations", label: "Organizations", icon: Building2, key: "u", operator: true },
  { to: "/operator/status", label: "Status", icon: HeartPulse, key: "s", operator: true },
];

interface Section {
  readonly to:
    | "/"
    | "/approvals"
    | "/activity"
    | "/access"
    | "/api"
    | "/operator"
    | "/operator/organizations"
    | "/operator/status";
  readonly label: string;
  readonly icon: typeof LayoutGrid;
  readonly key: string;
  readonly operator?: true;
}

/** A project's pages. */
export const projectTabs = [
  ["/projects/$slug", "Overview"],
  ["/projects/$slug/deployments", "Deployments"],
  ["/projects/$slug/processes", "Processes"],
  ["/projects/$slug/logs", "Logs"],
  ["/projects/$slug/metrics", "Metrics"],
  ["/projects/$slug/variables", "Variables"],
  ["/projects/$slug/domains", "Domains"],
  ["/projects/$slug/cron", "Cron"],
  ["/projects/$slug/database", "Database"],
  ["/projects/$slug/backups", "Backups"],
  ["/projects/$slug/timeline", "Timeline"],
  ["/projects/$slug/files", "Files"],
  ["/projects/$slug/settings", "Settings"],
] as const;

/** How well a query finds a text: 2 as written, 1 by its letters in their order, 0 not at all. */
export function matchRank(text: string, query: string): 0 | 1 | 2 {
  const [inText, wanted] = [text.toLowerCase(), query.trim().toLowerCase()];
  if (inText.includes(wanted)) return 2;
  let from = 0;
  for (const letter of wanted.replaceAll(" ", "")) {
    from = inText.indexOf(letter, from) + 1;
    if (from === 0) return 0;
  }
  return 1;
}
