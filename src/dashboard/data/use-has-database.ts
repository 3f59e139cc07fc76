import { useCall } from "./api.ts";

/** Returns whether the project has a database, once known. Reads the overview: asking for a missing database is an error. */
export function useHasDatabase(slug: string): boolean | undefined {
  const { data } = useCall("overview.get", {});
  const seen = data && [...data.projects, ...data.previews].find((project) => project.slug === slug);
  return seen === undefined ? undefined : seen.database !== null;
}
