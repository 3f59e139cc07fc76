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

/** A project's pages, each with the letter that follows `g`. */
export const projectTabs = [
  ["/projects/$slug", "Overview", "h"],
  ["/projects/$slug/deployments", "Deployments", "d"],
  ["/projects/$slug/processes", "Processes", "r"],
  ["/projects/$slug/logs", "Logs", "l"],
  ["/projects/$slug/metrics", "Metrics", "e"],
  ["/projects/$slug/variables", "Variables", "v"],
  ["/projects/$slug/domains", "Domains", "n"],
  ["/projects/$slug/cron", "Cron", "c"],
  ["/projects/$slug/database", "Database", "q"],
  ["/projects/$slug/backups", "Backups", "b"],
  ["/projects/$slug/timeline", "Timeline", "t"],
  ["/projects/$slug/files", "Files", "f"],
  ["/projects/$slug/settings", "Settings", ","],
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
