import { useCall } from "./api.ts";

/** Whether the project has a database, as the overview knows it: asking for one that is not there is an error. Undefined until it is known. */
export function useHasDatabase(slug: string): boolean | undefined {
  const { data } = useCall("overview.get", {});
  const seen = data?.projects.find((project) => project.slug === slug);
  return seen === undefined ? undefined : seen.database !== null;
}
