import type { Edge } from "../../ports/edge.ts";

/** Orders items: first those of projects whose visitors the edge refused since the last call. */
export interface AskedProjects {
  first<T>(items: readonly T[], projectOf: (item: T) => string): Promise<readonly T[]>;
}

/** If the edge can't be read, the order stays unchanged. */
export function createAskedProjects(edge: Pick<Edge, "measure">): AskedProjects {
  let known = new Map<string, number>();
  const asked = new Set<string>();
  return {
    async first(items, projectOf) {
      const now = await refusals(edge);
      for (const [project, count] of now) if (count > (known.get(project) ?? 0)) asked.add(project);
      known = now;
      return items.toSorted((one, other) => Number(asked.has(projectOf(other))) - Number(asked.has(projectOf(one))));
    },
  };
}

async function refusals(edge: Pick<Edge, "measure">): Promise<Map<string, number>> {
  const usages = await edge.measure().catch(() => []);
  const counts = new Map<string, number>();
  for (const { project_id, by_class } of usages)
    counts.set(project_id, (counts.get(project_id) ?? 0) + (by_class["5"] ?? 0));
  return counts;
}
