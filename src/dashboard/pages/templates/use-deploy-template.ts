import type { Answer } from "../../../contract/client.ts";
import { useAction } from "../../data/api.ts";

export type Template = Answer<"templates.list">["templates"][number];

/** Returns what deploys a template in a project without source, with a database if it needs one, and resolves with the build's id. */
export function useDeployTemplate() {
  const database = useAction("database.create");
  const change = useAction("builds.change");
  return async (slug: string, { name, files, has_database: hasDatabase }: Template) => {
    const params = { slug };
    const isMade = database.isSuccess && database.variables.params.slug === slug;
    if (hasDatabase && !isMade) await database.mutateAsync({ params, body: {} });
    const body = { files: [...files], message: `Template ${name}` };
    return (await change.mutateAsync({ params, body })).build_id;
  };
}
