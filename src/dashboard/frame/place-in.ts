import { projectGroups, type ProjectTab } from "./places.ts";

/** Returns the group and the page to which a path of a project belongs, also one of a single build, comparison or run. */
export function placeIn(path: string, slug: string): { readonly group: string; readonly tab: ProjectTab } {
  const rest = path.slice(`/projects/${encodeURIComponent(slug)}`.length);
  const owned = rest.replace(/^\/(?:builds\/.*|compare)$/, "/deployments").replace(/^\/runs\/.*/, "/processes");
  const wanted = `/projects/$slug${owned}`;
  for (const [group, tabs] of projectGroups)
    for (const tab of tabs)
      if (wanted === tab[0] || (group !== "Overview" && wanted.startsWith(`${tab[0]}/`))) return { group, tab };
  return { group: "Overview", tab: projectGroups[0][1][0] };
}
