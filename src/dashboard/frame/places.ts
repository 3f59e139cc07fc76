import { Activity, Building2, Code, HeartPulse, KeyRound, LayoutGrid, Server, ShieldCheck } from "lucide-react";

/** The pages outside of projects, in the order of the sidebar. `g` and then `key` opens one. */
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

/** A project's pages, by what people want from them. A group leads to its first page. `g` and then the letter opens a page. */
export const projectGroups = [
  ["Overview", [["/projects/$slug", "Overview", "h"]]],
  [
    "Deployments",
    [
      ["/projects/$slug/deployments", "Deployments", "d"],
      ["/projects/$slug/previews", "Previews", "w"],
      ["/projects/$slug/files", "Files", "f"],
    ],
  ],
  [
    "Observe",
    [
      ["/projects/$slug/logs", "Logs", "l"],
      ["/projects/$slug/requests", "Requests", "x"],
      ["/projects/$slug/metrics", "Metrics", "e"],
      ["/projects/$slug/timeline", "Timeline", "t"],
      ["/projects/$slug/terminal", "Terminal", "y"],
    ],
  ],
  [
    "Data",
    [
      ["/projects/$slug/database", "Database", "q"],
      ["/projects/$slug/storage", "Storage", "z"],
      ["/projects/$slug/backups", "Backups", "b"],
    ],
  ],
  [
    "Configure",
    [
      ["/projects/$slug/variables", "Variables", "v"],
      ["/projects/$slug/domains", "Domains", "n"],
      ["/projects/$slug/cron", "Cron", "c"],
      ["/projects/$slug/processes", "Processes", "r"],
      ["/projects/$slug/settings", "Settings", ","],
    ],
  ],
] as const;

export const projectTabs = projectGroups.flatMap(([, tabs]) => [...tabs]);

export type ProjectTab = (typeof projectTabs)[number];

/** Returns how well a text matches a query: 2 if it contains it, 1 if its letters begin words, such as `rb` for "Roll back"; else 0. */
export function matchRank(text: string, query: string): 0 | 1 | 2 {
  const [inText, wanted] = [text.toLowerCase(), query.trim().toLowerCase()];
  if (inText.includes(wanted)) return 2;
  const starts = Array.from(inText.matchAll(/[\p{L}\p{N}]+/gu), ({ index }) => index);
  let next = starts;
  for (const letter of wanted.replaceAll(" ", "")) {
    const found = next.filter((at) => inText[at] === letter).map((at) => at + 1);
    if (found.length === 0) return 0;
    const least = Math.min(...found);
    next = [...new Set([...found, ...starts.filter((at) => at >= least)])];
  }
  return 1;
}
